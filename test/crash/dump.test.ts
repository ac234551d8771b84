import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { aFolder } from '../folders.ts'
import { lacksPrivate } from '../servers/private.ts'
import { dumpApi, dumpRaw } from './dump.ts'
import { createEnvironment, type Environment } from './environment.ts'

interface Case {
  store: 'sqlite' | 'postgres' | 'redis'
  lacking: string | undefined
  /** Deletes a letter and leaves its dependent rows. */
  damage: (url: string, id: string) => Promise<void>
}

const cases: Case[] = [
  {
    store: 'sqlite',
    lacking: undefined,
    damage: async (url, id) => {
      const db = new DatabaseSync(url.slice('sqlite:'.length))
      db.prepare("DELETE FROM letters WHERE id = unhex(?, '-')").run(id)
      db.close()
    },
  },
  {
    store: 'postgres',
    lacking: lacksPrivate.postgres(),
    damage: async (url, id) => {
      const client = new Client({ connectionString: url })
      await client.connect()
      await client.query('DELETE FROM redrive.letters WHERE id = $1', [id])
      await client.end()
    },
  },
  {
    store: 'redis',
    lacking: lacksPrivate.redis(),
    damage: async (url, id) => {
      const client = createClient({ url })
      await client.connect()
      await client.del(`{redrive}:l:${id}`)
      client.destroy()
    },
  },
]

for (const { store, lacking, damage } of cases)
  describe.skipIf(lacking)(`${store}, read without the product`, () => {
    const folder = aFolder('dump')
    let environment: Environment
    beforeAll(async () => {
      environment = await createEnvironment(store === 'sqlite' ? undefined : store, folder, 1)
    }, 60_000)
    afterAll(async () => {
      await environment.end(false)
    })

    it('agrees with the product, until a letter is missing', async () => {
      const dlq = await DeadLetterQueue.open(environment.url, { onStoreDown: 'fail' })
      const ids: string[] = []
      for (const payload of ['a', 'b', 'c'])
        ids.push((await dlq.enqueue({ type: 'work', payload }, new Error('no'))).id)
      await dlq.resolve(ids[1]!)
      await dlq.park(ids[2]!)
      await dlq.close()
      const [raw, api] = [await dumpRaw(environment.url), await dumpApi(environment.url)]
      expect(raw.letters).toHaveLength(3)
      expect(raw.problems).toEqual([])
      expect(raw).toEqual(api)
      await damage(environment.url, ids[2]!)
      const damaged = await dumpRaw(environment.url)
      expect(damaged.letters).toHaveLength(2)
      expect(damaged.problems).not.toEqual([])
    })
  })

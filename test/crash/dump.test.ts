import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../src/queue.ts'
import { lacksPrivate } from '../servers/private.ts'
import { dumpApi, dumpRaw } from './dump.ts'
import { setScene, type Scene } from './scene.ts'

interface Case {
  store: 'sqlite' | 'postgres' | 'redis'
  lacking: string | undefined
  /** Takes a letter away, and leaves what belongs to it. */
  damage: (url: string, id: string) => Promise<void>
}

const cases: Case[] = [
  {
    store: 'sqlite',
    lacking: undefined,
    damage: async (url, id) => {
      const db = new DatabaseSync(url.slice('sqlite:'.length))
      db.prepare('DELETE FROM letters WHERE id = ?').run(id)
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
  describe.skipIf(lacking)(`${store}, past the product`, () => {
    let folder: string
    let scene: Scene
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'redrive-dump-'))
      scene = await setScene(store === 'sqlite' ? undefined : store, folder, 1)
    }, 60_000)
    afterAll(async () => {
      await scene.end(false)
      rmSync(folder, { recursive: true, force: true })
    })

    it('tells the same as the product, until something is gone', async () => {
      const dlq = await DeadLetterQueue.open(scene.url, { onStoreDown: 'fail' })
      const ids: string[] = []
      for (const payload of ['a', 'b', 'c'])
        ids.push((await dlq.enqueue({ type: 'work', payload }, new Error('no'))).id)
      await dlq.resolve(ids[1]!)
      await dlq.park(ids[2]!)
      await dlq.close()
      const [raw, api] = [await dumpRaw(scene.url), await dumpApi(scene.url)]
      expect(raw.letters).toHaveLength(3)
      expect(raw.problems).toEqual([])
      expect(raw).toEqual(api)
      await damage(scene.url, ids[2]!)
      const damaged = await dumpRaw(scene.url)
      expect(damaged.letters).toHaveLength(2)
      expect(damaged.problems).not.toEqual([])
    })
  })

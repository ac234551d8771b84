import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privatePostgres, privateRedis } from '../servers/private.ts'
import { connectStore } from './backends.ts'
import { outcomeOf, retryUntilAnswered } from './outcome.ts'

interface PasswordServer {
  readonly name: string
  readonly lacks: string | undefined
  readonly begin: () => Promise<PrivateServer>
  /** Sets the password of the user `app` and ends its connections. */
  readonly setPassword: (server: PrivateServer, password: string) => Promise<void>
}

const postgres: PasswordServer = {
  name: 'postgres',
  lacks: lacksPrivate.postgres(),
  begin: async () => {
    const server = await privatePostgres()
    await asPostgres(server, async (client) => {
      await client.query('create role app login')
      await client.query('grant create on database postgres to app')
      const { rows } = await client.query<{ data_directory: string }>('show data_directory')
      const rules = join(rows[0]!.data_directory, 'pg_hba.conf')
      const before = readFileSync(rules, 'utf8')
      writeFileSync(rules, `host all app 127.0.0.1/32 scram-sha-256\n${before}`)
      await client.query('select pg_reload_conf()')
    })
    return server
  },
  setPassword: (server, password) =>
    asPostgres(server, async (client) => {
      await client.query(`alter role app password '${password}'`)
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`,
      )
    }),
}

async function asPostgres(
  { url }: PrivateServer,
  work: (client: Client) => Promise<void>,
): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

const redis: PasswordServer = {
  name: 'redis',
  lacks: lacksPrivate.redis(),
  begin: () => privateRedis(),
  setPassword: async ({ url }, password) => {
    const client = createClient({ url })
    await client.connect()
    const rule = ['on', 'resetpass', `>${password}`, '~*', '&*', '+@all']
    await client.sendCommand(['ACL', 'SETUSER', 'app', ...rule])
    await client.sendCommand(['CLIENT', 'KILL', 'USER', 'app'])
    client.destroy()
  },
}

describe.each([postgres, redis])('the password of $name', ({ lacks, begin, setPassword }) => {
  describe.skipIf(lacks)('that is wrong', () => {
    let server: PrivateServer
    beforeAll(async () => {
      server = await begin()
      await setPassword(server, 'first-secret')
    }, 60_000)
    afterAll(() => server?.remove())

    const urlWith = (password: string): string =>
      server.url.replace(/\/\/(postgres@)?/, `//app:${password}@`)

    it('is refused at open, and appears in no message', async () => {
      const store = await connectStore(urlWith('wrong-secret'))
      const { error } = await outcomeOf(store.open())
      expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
      expect(error!.message).toMatch(/password/)
      const messages = [error!.message, ...(await store.health()).problems].join('\n')
      expect(messages).not.toContain('secret')
      await store.close()
    })

    it('after a change stops the store, which recovers once the password is right again', async () => {
      const store = await connectStore(urlWith('first-secret'))
      await store.open()
      const add = () => store.add([aLetter({ id: systemClock.id() })])
      await add()
      await setPassword(server, 'second-secret')
      const { error } = await outcomeOf(add())
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(error!.message).not.toContain('secret')
      expect((await store.health()).ok).toBe(false)
      await setPassword(server, 'first-secret')
      expect((await retryUntilAnswered(add)).value).toEqual([{ kind: 'added' }])
      await store.close()
    })
  })
})

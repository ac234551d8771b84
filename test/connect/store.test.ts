import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { connect, needing, spoolPathOf } from '../../src/connect/store.ts'
import { nodeAdvice } from '../../src/backends/sqlite/node-version.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { follow, openSearchIndex, openSearchStore } from '../../src/stores/opensearch/opensearch.ts'
import { postgresStore } from '../../src/stores/postgres/postgres.ts'
import { redisStore } from '../../src/stores/redis/redis.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'

describe('connect', () => {
  it('returns the store of the URL scheme', async () => {
    expect((await connect('memory:', systemClock)).powers.kind).toBe('memory')
    expect((await connect('sqlite:x.db', systemClock)).powers.kind).toBe('sqlite')
  })

  it.each([
    ['sqlite:/x.db', '/x.db-spool'],
    ['sqlite:///x.db', '/x.db-spool'],
    ['SQLITE:x.db', 'x.db-spool'],
  ])('derives the spool folder from the file of %s', (url, spool) => {
    expect(spoolPathOf(url)).toBe(spool)
  })

  it('rejects the ambiguous URL sqlite://x.db', async () => {
    await expect(connect('sqlite://x.db', systemClock)).rejects.toThrow(
      'write sqlite:x.db for a file in this folder, or sqlite:/x.db for one at the root of the disk',
    )
  })

  it.each(['', 'redrive.db', 'mysql://root:secret@host/db', 'sqlite:', '__proto__:x'])(
    'rejects %j and shows a valid URL',
    async (url) => {
      const refusal = connect(url, systemClock)
      await expect(refusal).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('sqlite:redrive.db') as string,
      })
      await expect(refusal).rejects.not.toThrow('secret')
    },
  )
})

describe('settings in the URL of a store', () => {
  it.each([
    ['memory:?maxItems=1', 'a memory: store has no settings'],
    ['sqlite:x.db?busyTimeout=1', 'did you mean "busyTimeoutMs"?'],
    ['postgres://u:hush@h/d?shema=s', 'did you mean "schema"?'],
    ['postgres://u:hush@h/d?partition=month', 'did you mean "partitions"?'],
    ['postgres://u:hush@h/d?ssl_mode=require', 'did you mean "sslmode"?'],
    ['redis://u:hush@h/0?prefx=s', 'did you mean "prefix"?'],
    ['redis://u:hush@h/0?allowvolatile=true', 'did you mean "allowVolatile"?'],
    ['opensearch://u:hush@h/p?replica=1', 'did you mean "replicas"?'],
  ])('reject an unknown setting by name: %s', async (url, hint) => {
    const connecting = connect(url, systemClock)
    await expect(connecting).rejects.toThrow(hint)
    await expect(connecting).rejects.not.toThrow('hush')
    await expect(connecting).rejects.toMatchObject({
      code: expect.stringMatching(/^INVALID_(INPUT|CONFIG)$/) as string,
    })
  })

  it.each([
    ['sqlite:x.db?synchronous=half', 'known: full, relaxed'],
    ['sqlite:x.db?busyTimeoutMs=soon', 'busyTimeoutMs must be a number'],
  ])('reject an invalid value: %s', async (url, message) => {
    await expect(connect(url, systemClock)).rejects.toThrow(message)
  })

  it.each([
    'sqlite:x.db?synchronous=relaxed&busyTimeoutMs=100',
    'postgres://h/d?schema=s&partitions=month&sslmode=disable&application_name=me',
    'postgres://h/d?sslmode=require&channel_binding=require',
  ])('are accepted: %s', async (url) => {
    expect((await connect(url, systemClock)).powers.durable).toBe(true)
  })

  it('are not part of the file name of a SQLite store or of its spool folder', () => {
    expect(spoolPathOf('sqlite:x.db?synchronous=relaxed')).toBe('x.db-spool')
  })
})

describe('options of a store', () => {
  const misspelt = { url: 'redis://h', path: 'x.db', clok: systemClock }
  it.each([
    ['memoryStore', () => memoryStore({ clok: systemClock } as never), 'clock'],
    ['sqliteStore', () => sqliteStore({ path: 'x.db', clok: 1 } as never), 'clock'],
    ['postgresStore', () => postgresStore({ ...misspelt, path: undefined } as never), 'clock'],
    ['redisStore', () => redisStore({ ...misspelt, path: undefined } as never), 'clock'],
    ['openSearchStore', () => openSearchStore({ url: 'x', replica: 1 } as never), 'replicas'],
    ['openSearchIndex', () => openSearchIndex({ url: 'x', replica: 1 } as never), 'replicas'],
    ['follow', () => follow(memoryStore(), {} as never, { passMS: 1 } as never), 'passMs'],
  ])('reject an unknown key by name: %s', (name, make, nearest) => {
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }))
    expect(make).toThrow(`in options of ${name}: did you mean "${nearest}"?`)
  })

  it('that are undefined do not override the URL', () => {
    const store = redisStore({
      url: 'redis://h?allowVolatile=true',
      allowVolatile: undefined,
    } as never)
    expect(store.powers.durable).toBe(false)
  })
})

describe('needing', () => {
  it.each([
    ['ERR_MODULE_NOT_FOUND', "Cannot find package 'pg'", 'npm install pg'],
    ['ERR_UNKNOWN_BUILTIN_MODULE', 'No such built-in module: node:sqlite', nodeAdvice],
  ])('names the fix for %s', async (code, message, needed) => {
    const cause = Object.assign(new Error(message), { code })
    await expect(needing('pg', () => Promise.reject(cause))).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining(needed) as string,
    })
  })
})

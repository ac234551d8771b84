import { describe, expect, it } from 'vitest'
import { systemClock } from '../src/clock.ts'
import { connect, needing, spoolPathOf } from '../src/connect.ts'
import { nodeAdvice } from '../src/node-version.ts'

describe('connect', () => {
  it('gives the store of the scheme', async () => {
    expect((await connect('memory:', systemClock)).powers.kind).toBe('memory')
    expect((await connect('sqlite:x.db', systemClock)).powers.kind).toBe('sqlite')
  })

  it.each([
    ['sqlite:/x.db', '/x.db-spool'],
    ['sqlite:///x.db', '/x.db-spool'],
    ['SQLITE:x.db', 'x.db-spool'],
  ])('takes %s for a file, which is that of its spool too', (url, spool) => {
    expect(spoolPathOf(url)).toBe(spool)
  })

  it('does not guess which file sqlite://x.db is', async () => {
    await expect(connect('sqlite://x.db', systemClock)).rejects.toThrow(
      'write sqlite:x.db for a file in this folder, or sqlite:/x.db for one at the root of the disk',
    )
  })

  it.each(['', 'redrive.db', 'mysql://root:secret@host/db', 'sqlite:', '__proto__:x'])(
    'refuses %j and says what a URL looks like',
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

describe('needing', () => {
  it.each([
    ['ERR_MODULE_NOT_FOUND', "Cannot find package 'pg'", 'npm install pg'],
    ['ERR_UNKNOWN_BUILTIN_MODULE', 'No such built-in module: node:sqlite', nodeAdvice],
  ])('says what is missing: %s', async (code, message, needed) => {
    const cause = Object.assign(new Error(message), { code })
    await expect(needing('pg', () => Promise.reject(cause))).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining(needed) as string,
    })
  })
})

import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Tokens, type TokenInfo, type TokenWithSecret } from '../../../src/server/tokens.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aFolder, aStoreFile, expectToFit, hostileText, redrive } from '../run-cli.ts'

const folder = aFolder()

async function aStore() {
  const url = await aStoreFile(folder, [])
  return (...args: string[]) => redrive(['tokens', ...args, '--store', url])
}

const parse = <T>(out: string): T => JSON.parse(out) as T

describe('redrive tokens', () => {
  it('creates, lists, rotates and revokes a token', async () => {
    const tokens = await aStore()
    const rights = ['--permission', 'letter:read', '--permission', 'letter:retry']
    const scope = ['--queue', 'a', '--queue', 'b', '--tenant', 'acme', '--expires', '30d']
    const { out } = await tokens('create', 'ci', ...rights, ...scope, '--by', 'mia', '--json')
    const { token, info } = parse<TokenWithSecret>(out)
    expect(token).toMatch(/^rdr_/)
    expect(info).toMatchObject({
      name: 'ci',
      permissions: ['letter:read', 'letter:retry'],
      queues: ['a', 'b'],
      tenants: ['acme'],
      createdBy: 'mia',
    })
    expect(Date.parse(info.expiresAt!) - Date.parse(info.createdAt)).toBeCloseTo(
      30 * 86_400_000,
      -5,
    )
    const listed = (await tokens('list', '--json')).out
    expect(parse<TokenInfo>(listed)).toEqual(info)
    const rotated = parse<TokenWithSecret>(
      (await tokens('rotate', info.id, '--overlap', '1h', '--json')).out,
    )
    expect(rotated.token).not.toBe(token)
    expect(rotated.info.oldSecretUntil).toBeDefined()
    expect((await tokens('revoke', info.id)).out).toBe(`ci (${info.id}) is revoked.\n`)
    expect((await tokens('list')).out).toContain('There are no tokens')
    expect((await tokens('revoke', info.id)).exit).toBe(4)
  })

  it('creates ids that the command line does not take for options', async () => {
    const store = memoryStore()
    await store.open()
    const tokens = new Tokens({ store, clock: systemClock })
    for (let count = 0; count < 500; count++) {
      const { info } = await tokens.create({ name: 'ci', role: 'viewer', createdBy: 'mia' })
      expect(info.id).not.toMatch(/^-/)
    }
  })

  it('prints a token for people once, and escapes names', async () => {
    const tokens = await aStore()
    const { out } = await tokens('create', hostileText.replace('\u0000', ''), '--role', 'viewer')
    expect(out).toMatch(/^rdr_[\w-]+\n/)
    const listed = (await tokens('list')).out
    expectToFit(listed)
    expect(listed).not.toContain(out.split('\n', 1)[0])
  })

  it('prints its help within 80 columns', async () => {
    expectToFit((await redrive(['tokens', '--help'])).out)
    expectToFit((await redrive(['tokens', 'create', '--help'])).out)
  })

  it.each([
    [['create', '', '--role', 'viewer'], '1 to 200 characters'],
    [['create', 'ci'], 'either `role` or `permissions`'],
    [['create', 'ci', '--role', 'viewer', '--permission', 'admin'], 'either'],
    [['create', 'ci', '--permission', 'letter:raed'], 'letter:read'],
    [['create', 'ci', '--role', 'viewer', '--expires', '2020-01-01T00:00:00.000Z'], 'future'],
    [['rotate', 'x', '--overlap', 'long'], '--overlap must be a duration'],
    [['rotate', 'x', '--overlap', '2d'], '24 hours'],
  ])('rejects %s', async (args, message) => {
    const tokens = await aStore()
    const { err, exit } = await tokens(...args)
    expect(exit).toBe(2)
    expect(err).toContain(message)
  })
})

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configJsonSchema } from '../../../src/config/json-schema.ts'
import { aFolder, expectEscaped, expectToFit, hostileText, redrive } from '../run-cli.ts'

const root = aFolder()
let folders = 0

/** A folder with these files. */
function folderWith(files: Record<string, string>): string {
  const folder = join(root, String(++folders))
  mkdirSync(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

const sound = `
maxRetries: 5
store: postgres://redrive:hunter2@db.example.com/redrive?sslmode=verify-full
handlers:
  charge-card:
    http:
      url: https://payments.example.com/redrive
      secret: { env: PAYMENTS_SECRET }
      headers: { authorization: { file: token } }
`
const env = { PAYMENTS_SECRET: 'hunter2' }

describe('config check', () => {
  it('prints each value and its origin, without secrets', async () => {
    const cwd = folderWith({ 'redrive.yaml': sound, token: 'Bearer hunter2\n' })
    const { out, err, exit } = await redrive(['config', 'check', '--set', 'claimBatch=7'], {
      cwd,
      env: { ...env, REDRIVE_POLL_MS: '2s' },
    })
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    expect(out).toMatch(/^maxRetries +redrive\.yaml:2 +5$/m)
    expect(out).toMatch(/^pollMs +REDRIVE_POLL_MS +2s$/m)
    expect(out).toMatch(/^claimBatch +--set claimBatch +7$/m)
    expect(out).toMatch(/^leaseMs +default +30s$/m)
    expect(out).toMatch(/^store +redrive\.yaml:3 +postgres:\/\/db\.example\.com/m)
    expect(out).toMatch(/^handlers\.charge-card\.http\.secret +redrive\.yaml:8 +\*\*\*$/m)
    expect(out).toContain('The configuration is valid: 1 handler.')
    expect(out).not.toContain('hunter2')
    expectToFit(out)
  })

  it('reports why a file cannot be read', async () => {
    const cwd = folderWith({})
    writeFileSync(join(cwd, 'latin.yaml'), Buffer.from('store: sqlite:caf\u00e9.db', 'latin1'))
    writeFileSync(join(cwd, 'large.yaml'), '#'.repeat(1024 ** 2 + 1))
    const check = async (file: string): Promise<string> =>
      (await redrive(['config', 'check', file], { cwd })).err
    expect(await check('latin.yaml')).toBe('INVALID_CONFIG: latin.yaml: the file is not UTF-8\n')
    expect(await check('large.yaml')).toContain('or is larger than 1 MiB')
    expect(await check('.')).toBe('INVALID_CONFIG: .: is a folder: name a file in it\n')
  })

  it('shortens a long file path so that the values fit', async () => {
    const cwd = folderWith({ 'redrive.yaml': sound, token: 'Bearer hunter2' })
    const long = `${cwd}/${'./'.repeat(30)}redrive.yaml`
    const { out } = await redrive(['config', 'check', long], { cwd, env })
    expect(out).toMatch(/^store +redrive\.yaml:3 +postgres:\/\/db\.example\.com/m)
    expectToFit(out)
  })

  it('hides the password of a store with several hosts and the token of a webhook', async () => {
    const text = `store: redis://app:hunter2@a:6379,b:6379/0\nnotify: { a: { webhook: { url: 'https://x.example.com/?token=hunter2' } } }`
    const cwd = folderWith({ 'redrive.yaml': text })
    const { out, exit } = await redrive(['config', 'check', '--json'], { cwd })
    expect(exit).toBe(0)
    expect(out).toContain('redis://a:6379,b:6379/0')
    expect(out).not.toContain('hunter2')
  })

  it('prints the same values as JSON with --json', async () => {
    const cwd = folderWith({ 'my.yaml': sound, token: 'Bearer hunter2' })
    const { out, exit } = await redrive(['config', 'check', 'my.yaml', '--json'], { cwd, env })
    expect(exit).toBe(0)
    const report = JSON.parse(out) as { settings: object[] }
    expect(report).toMatchObject({ ok: true, file: 'my.yaml' })
    expect(report.settings).toContainEqual({ key: 'maxRetries', value: 5, from: 'my.yaml:2' })
    expect(out).not.toContain('hunter2')
  })

  it('prints every problem, and exits with 2', async () => {
    const text = `maxRetires: 1\nleaseMs: soon\nqueues: { ${JSON.stringify(hostileText)}: { maxRetries: -1 } }`
    const cwd = folderWith({ 'redrive.yaml': text })
    const { out, err, exit } = await redrive(['config', 'check'], { cwd })
    expect({ out, exit }).toEqual({ out: '', exit: 2 })
    expect(err).toMatch(/^INVALID_CONFIG: 3 problems in the configuration$/m)
    expect(err).toContain('maxRetires (redrive.yaml:1): unknown key; did you mean "maxRetries"?')
    expect(err).toContain('leaseMs (redrive.yaml:2): must be a duration from 50ms to 1d')
    expectEscaped(err)
    const asJson = await redrive(['config', 'check', '--json'], { cwd })
    expect(asJson.exit).toBe(2)
    const { ok, problems } = JSON.parse(asJson.out) as { ok: boolean; problems: object[] }
    expect(ok).toBe(false)
    expect(problems).toHaveLength(3)
    expect(problems[0]).toMatchObject({ key: 'leaseMs', from: 'redrive.yaml:2' })
  })

  it('runs without a file, and rejects a named file that does not exist', async () => {
    const cwd = folderWith({})
    expect((await redrive(['config', 'check'], { cwd })).exit).toBe(0)
    const { err, exit } = await redrive(['config', 'check', 'none.yaml'], { cwd })
    expect({ err, exit }).toEqual({
      err: 'INVALID_CONFIG: none.yaml: the file does not exist\n',
      exit: 2,
    })
  })
})

describe('config schema', () => {
  it('prints the published schema', async () => {
    const { out, exit } = await redrive(['config', 'schema'])
    expect(exit).toBe(0)
    expect(JSON.parse(out)).toEqual(configJsonSchema())
  })
})

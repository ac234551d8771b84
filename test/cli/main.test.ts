import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { aLetter } from '../../src/testing/a-letter.ts'
import { aFolder, aStoreFile, expectToFit, plainEnv, redrive } from './run-cli.ts'

const folder = aFolder()

describe('redrive', () => {
  it('explains itself with examples', async () => {
    const { out, exit } = await redrive(['--help'])
    expect(exit).toBe(0)
    for (const command of [
      'list',
      'show',
      'stats',
      'retry',
      'archive',
      'doctor',
      'import',
      'export',
      'demo',
    ])
      expect(out).toContain(`\n  ${command} `)
    expect(out).toContain('Examples:')
    expectToFit(out)
  })

  it('explains each command within 80 columns', { timeout: 90_000 }, async () => {
    const commands = ['list', 'show', 'stats', 'retry', 'doctor', 'import', 'export', 'demo']
    for (const command of commands) {
      const { out, exit } = await redrive([command, '--help'])
      expect(exit).toBe(0)
      expect(out).toContain('Examples:')
      expect(out).toContain('--store')
      expectToFit(out)
    }
  })

  it('prints its version', async () => {
    expect(await redrive(['--version'])).toMatchObject({
      out: `${manifest.version}\n`,
      err: '',
      exit: 0,
    })
  })

  it('shows its help when it is not told what to do', async () => {
    const { err, exit } = await redrive([])
    expect(err).toContain('Usage: redrive')
    expect(err).not.toContain('INVALID_INPUT')
    expect(exit).toBe(2)
  })

  it.each([
    [['lst'], "INVALID_INPUT: unknown command 'lst'\n  Did you mean list?\n"],
    [
      ['list', '--stat', 'parked'],
      "INVALID_INPUT: unknown option '--stat'\n  Did you mean --state?\n",
    ],
    [
      ['show'],
      "INVALID_INPUT: missing required argument 'ids'\n  redrive --help lists the commands.\n",
    ],
  ])('says what is wrong with %j and what is near', async (args, err) => {
    expect(await redrive(args)).toEqual({ out: '', err, exit: 2 })
  })

  it.each([['list'], ['retry', '--all'], ['doctor'], ['export']])(
    'does not make a store to look at: %s',
    async (...args) => {
      const { out, err, exit } = await redrive(args, { cwd: folder })
      expect(out).toBe('')
      expect(err).toMatch(
        /^STORE_UNAVAILABLE: there is no store file redrive\.db: .*--store sqlite:FILE.*REDRIVE_STORE/,
      )
      expect(exit).toBe(8)
      expect(existsSync(join(folder, 'redrive.db'))).toBe(false)
    },
  )

  it('leaves a file alone that is no store', async () => {
    const path = join(folder, 'notes.txt')
    writeFileSync(path, 'my notes, which are longer than a header of a database would be')
    const { err, exit } = await redrive(['list', '--store', `sqlite:${path}`])
    expect(err).toMatch(/^STORE_UNSAFE: .*not a SQLite database/)
    expect(exit).toBe(8)
  })

  it('refuses a store that could hold nothing', async () => {
    const { err, exit } = await redrive(['list', '--store', 'memory:'])
    expect(err).toMatch(/^INVALID_INPUT: a memory: store is gone/)
    expect(exit).toBe(2)
  })

  it('takes the store from REDRIVE_STORE, and from --store before it', async () => {
    const url = await aStoreFile(folder, [aLetter({ queue: 'from-here' })])
    const env = { REDRIVE_STORE: url }
    expect((await redrive(['list'], { env })).out).toContain('from-here')
    expect((await redrive(['--store', 'sqlite:nowhere.db', 'list'], { env })).err).toContain(
      'nowhere.db',
    )
  })

  it('ends quietly when nobody reads on', async () => {
    const url = await aStoreFile(
      folder,
      Array.from({ length: 1500 }, () => aLetter()),
    )
    const command = `"${process.execPath}" src/cli/main.ts list --all --json --store "${url}" | head -n 1; echo "$\{PIPESTATUS[0]}"`
    const child = spawn('bash', ['-c', command], {
      env: plainEnv,
      cwd: join(import.meta.dirname, '../..'),
    })
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    expect(err).toBe('')
    expect(out.trim().split('\n').at(-1)).toBe('0')
  })
})

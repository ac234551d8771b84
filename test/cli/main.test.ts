import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { nodeAdvice } from '../../src/backends/sqlite/node-version.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { spawn } from '../processes.ts'
import {
  aFolder,
  aStoreFile,
  expectToFit,
  plainEnv,
  redrive,
  redriveProcess,
  type Ran,
} from './run-cli.ts'

const folder = aFolder()

/** An environment in which commands print what they loaded: the group of the pattern. */
function printLoads(pattern: RegExp): NodeJS.ProcessEnv {
  const program = `
    import { registerHooks } from 'node:module'
    const loaded = new Set()
    registerHooks({
      load(url, context, next) {
        const name = ${String(pattern)}.exec(url)?.slice(1).find((group) => group !== undefined)
        if (name !== undefined) loaded.add(name)
        return next(url, context)
      },
    })
    process.once('exit', () => console.error([...loaded].join()))`
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(program)}` }
}

describe('redrive', () => {
  it('prints help with examples', async () => {
    const { out, exit } = await redriveProcess(['--help'])
    expect(exit).toBe(0)
    for (const command of [
      'list',
      'show',
      'stats',
      'retry',
      'archive',
      'review',
      'doctor',
      'import',
      'export',
      'demo',
    ])
      expect(out).toContain(`\n  ${command} `)
    expect(out).toContain('Examples:')
    expectToFit(out)
  })

  it('prints the help of each command within 80 columns', async () => {
    const commands = [
      'list',
      'show',
      'stats',
      'retry',
      'review',
      'archive',
      'restore',
      'doctor',
      'import',
      'export',
      'copy',
      'work',
      'config check',
      'pipeline replay',
      'pipeline status',
      'demo',
    ]
    for (const command of commands) {
      const { out, exit } = await redrive([...command.split(' '), '--help'])
      expect(exit).toBe(0)
      expect(out).toContain('Examples:')
      expect(out).toContain('--store')
      expect(out).not.toContain('[])')
      expectToFit(out)
    }
  })

  it('prints its version', async () => {
    expect(await redriveProcess(['--version'])).toMatchObject({
      out: `${manifest.version}\n`,
      err: '',
      exit: 0,
    })
  })

  it.each([['--version'], ['--help'], ['list']])(
    'loads one package and no queue for %s, so that it starts fast',
    async (...args) => {
      const env = printLoads(/node_modules.((?:@[^/]+.)?[^/]+)|(src.queue|src.server)/)
      const url = await aStoreFile(folder, [aLetter()])
      const ran = await redriveProcess([...args, '--store', url], { env })
      expect(ran).toMatchObject({ err: 'commander\n', exit: 0 })
    },
  )

  it.each([
    [['list'], 'list'],
    [['--store', 'sqlite:queue', 'stats'], 'stats'],
    [['note', '--help'], 'note'],
  ])('loads no other command for %j', async (args, own) => {
    const env = printLoads(/src.cli.commands.([a-z]+)[.]ts$/)
    const { err } = await redriveProcess(args, { env, cwd: folder })
    expect(err.trim().split('\n').at(-1)).toBe(own)
  })

  it('suggests a command although its subcommand is also the name of one', async () => {
    const { err, exit } = await redrive(['qeue', 'list'])
    expect({ err, exit }).toEqual({
      err: "INVALID_INPUT: unknown command 'qeue'\n  Did you mean queue?\n",
      exit: 2,
    })
  })

  it.each([
    ['20.20.2', 2],
    ['22.22.2', 2],
    ['22.22.3', 0],
    ['24.14.1', 2],
    ['24.15.0', 0],
    ['100.0.0', 0],
  ])('checks Node %s against the supported versions', async (node, exit) => {
    const ran = await redrive(['list', '--store', await aStoreFile(folder, [])], { node })
    expect(ran.exit).toBe(exit)
    if (exit === 2)
      expect(ran.err).toBe(
        `INVALID_CONFIG: redrive does not run on Node ${node}: ${nodeAdvice}, and make it the first in PATH\n`,
      )
  })

  it('prints its help without a command', async () => {
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
      "INVALID_INPUT: missing required argument 'ids'\n  redrive --help lists the commands; redrive COMMAND --help shows the options of one.\n",
    ],
  ])('rejects %j with a suggestion', async (args, err) => {
    expect(await redrive(args)).toEqual({ out: '', err, exit: 2 })
  })

  it('rejects an empty store name instead of using the default store', async () => {
    const cwd = aFolder()
    const store = sqliteStore({ path: join(cwd, 'redrive.db') })
    await store.open()
    await store.add([aLetter({ state: 'parked' })])
    await store.close()
    const retry = ['retry', '--all', '--yes']
    const empty = (name: string): Ran => ({
      out: '',
      err: `INVALID_INPUT: ${name} is empty: name a store such as sqlite:redrive.db, or remove it\n`,
      exit: 2,
    })
    expect(await redrive([...retry, '--store', ''], { cwd })).toEqual(empty('--store'))
    expect(await redrive(retry, { cwd, env: { REDRIVE_STORE: '' } })).toEqual(
      empty('REDRIVE_STORE'),
    )
    expect((await redrive(retry, { cwd, env: { REDRIVE_CONFIG: '' } })).err).toBe(
      'INVALID_CONFIG: REDRIVE_CONFIG: is empty: name a file or remove it\n',
    )
  })

  it.each([['list'], ['retry', '--all'], ['doctor'], ['export']])(
    'does not create a store for a command that reads: %s',
    async (...args) => {
      const { out, err, exit } = await redrive(args, { cwd: folder })
      expect(out).toBe('')
      expect(err).toMatch(
        /^STORE_UNAVAILABLE: the store file redrive\.db does not exist: .*--store sqlite:FILE.*REDRIVE_STORE/,
      )
      expect(exit).toBe(8)
      expect(existsSync(join(folder, 'redrive.db'))).toBe(false)
    },
  )

  it('does not create a store in an empty file for a command that reads', async () => {
    const file = join(folder, 'empty.db')
    writeFileSync(file, '')
    const { out, err, exit } = await redrive(['list', '--store', `sqlite:${file}`])
    expect({ out, exit }).toEqual({ out: '', exit: 8 })
    expect(err).toMatch(/^STORE_UNAVAILABLE: the file .*empty\.db is empty and contains no store: /)
    expect(readFileSync(file, 'utf8')).toBe('')
  })

  it('does not change a file that is not a store', async () => {
    const path = join(folder, 'notes.txt')
    writeFileSync(path, 'my notes, which are longer than a header of a database would be')
    const { err, exit } = await redrive(['list', '--store', `sqlite:${path}`])
    expect(err).toMatch(/^STORE_UNSAFE: .*not a SQLite database/)
    expect(exit).toBe(8)
  })

  it('rejects a memory store', async () => {
    const { err, exit } = await redrive(['list', '--store', 'memory:'])
    expect(err).toMatch(/^INVALID_INPUT: a memory: store exists only in its process/)
    expect(exit).toBe(2)
  })

  it('reads the store from REDRIVE_STORE, and prefers --store', async () => {
    const url = await aStoreFile(folder, [aLetter({ queue: 'from-here' })])
    const env = { REDRIVE_STORE: url }
    expect((await redrive(['list'], { env })).out).toContain('from-here')
    expect((await redrive(['--store', 'sqlite:nowhere.db', 'list'], { env })).err).toContain(
      'nowhere.db',
    )
  })

  it('reads the store from the file in REDRIVE_STORE_FILE', async () => {
    const named = join(folder, 'store-url')
    writeFileSync(named, await aStoreFile(folder, [aLetter({ queue: 'from-there' })]))
    const { out } = await redrive(['list'], { env: { REDRIVE_STORE_FILE: named } })
    expect(out).toContain('from-there')
  })

  describe('with a configuration whose secrets are missing', () => {
    const cwd = aFolder()
    const handlers = `handlers:
  orders: { http: { url: 'https://a.example', secret: { env: NOT_SET_ANYWHERE } } }
  mails: { mailbox: { url: { file: not-there } } }
`
    const missing = [
      'handlers.orders.http.secret (redrive.yaml:3): the environment variable NOT_SET_ANYWHERE is not set or empty',
      'handlers.mails.mailbox.url (redrive.yaml:4): the file not-there cannot be read or is empty',
    ]
    const letter = aLetter({ queue: 'orders', state: 'parked' })
    const configured = async (more = ''): Promise<void> => {
      const url = await aStoreFile(cwd, [letter])
      writeFileSync(join(cwd, 'redrive.yaml'), `store: ${url}\n${handlers}${more}`)
    }

    it.each([['list'], ['show', letter.id], ['stats'], ['export'], ['retry', letter.id]])(
      'runs commands that need no secret: %s',
      async (...args) => {
        await configured()
        const { out, err, exit } = await redrive(args, { cwd })
        expect({ err, exit }).toEqual({ err: '', exit: 0 })
        expect(out).toContain('orders')
      },
    )

    it('reports them in doctor', async () => {
      await configured()
      const { out, err, exit } = await redrive(['doctor'], { cwd })
      expect({ err, exit }).toEqual({ err: '', exit: 1 })
      for (const one of missing) expect(out).toContain(`FAIL configuration: ${one}\n`)
      expect(out).toContain('1 letter read, none corrupt')
      expect(out).toContain('2 problems found.')
    })

    it('does not start a worker', async () => {
      await configured()
      const { out, err, exit } = await redrive(['work'], { cwd })
      expect({ out, exit }).toEqual({ out: '', exit: 2 })
      expect(err).toMatch(/^INVALID_CONFIG: 2 problems in the configuration/)
      for (const one of missing) expect(err).toContain(one)
    })

    it('still rejects other problems', async () => {
      await configured('maxRetires: 1')
      const { err, exit } = await redrive(['list'], { cwd })
      expect(err).toContain('did you mean "maxRetries"?')
      expect(exit).toBe(2)
    })
  })

  it('prints the help of one command, and rejects an unknown command', async () => {
    const { out, exit } = await redrive(['help', 'pipeline', 'replay'])
    expect(out).toMatch(/^Usage: redrive pipeline replay /)
    expect(exit).toBe(0)
    expect(await redrive(['help', 'frobnicate'])).toMatchObject({
      out: '',
      err: expect.stringContaining(
        'INVALID_INPUT: unknown command "frobnicate": known: list, show',
      ),
      exit: 2,
    })
  })

  it('prints errors as JSON with --json', async () => {
    const { out, err, exit } = await redrive([
      'show',
      'nope',
      '--json',
      '--store',
      'sqlite:none.db',
    ])
    expect({ out, exit }).toEqual({ out: '', exit: 8 })
    expect(JSON.parse(err)).toEqual({
      error: { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('none.db') as string },
    })
    const unread = await redrive(['lst', '--json'])
    expect(JSON.parse(unread.err)).toMatchObject({ error: { code: 'INVALID_INPUT' } })
  })

  it.each([['--json'], ['bulk', '--json'], ['queue', '--jsonl'], ['--jsonl', 'config']])(
    'prints no help but an error as JSON if the command is missing: %s %s',
    async (...args) => {
      const { out, err, exit } = await redrive(args)
      expect({ out, exit }).toEqual({ out: '', exit: 2 })
      expect(JSON.parse(err)).toMatchObject({
        error: { code: 'INVALID_INPUT', message: 'the command is missing' },
      })
    },
  )

  it('exits with 0 when its output pipe closes', async () => {
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

  it.skipIf(!existsSync('/dev/full'))(
    'exits with 74 when its output cannot be written',
    async () => {
      const url = await aStoreFile(folder, [aLetter()])
      const command = `"${process.execPath}" src/cli/main.ts list --store "${url}" > /dev/full`
      const child = spawn('bash', ['-c', command], {
        env: plainEnv,
        cwd: join(import.meta.dirname, '../..'),
      })
      const [err, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
      expect(err).toContain('UNWRITTEN: the output could not be written completely')
      expect(code).toBe(74)
    },
  )
})

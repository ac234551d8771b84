import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { encodePayload } from '../../../src/letter/payload.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { runSync } from '../../processes.ts'
import { aFolder, aStoreFile, hostileText, redrive, redriveProcess } from '../run-cli.ts'

const folder = aFolder()
const letters = [
  aLetter({ queue: 'charge-card', payload: encodePayload({ hostileText }) }),
  aLetter({
    queue: 'orders',
    payload: encodePayload(new Uint8Array([1, 0, 255])),
    state: 'exhausted',
  }),
]

/** Runs `redrive export --format operations`. */
const exportOperations: typeof redrive = (args, options) =>
  redrive(['export', '--format', 'operations', ...args], options)

describe('export', () => {
  it('writes lines that only their owner can read and that import reads back', async () => {
    const archived = aLetter({ state: 'archived' })
    const url = await aStoreFile(folder, [...letters, archived])
    const other = await aStoreFile(folder, [])
    const file = join(folder, 'out.jsonl')
    const ran = await redrive(['export', file, '--store', url])
    expect(ran).toMatchObject({ out: `3 letters written to ${file}.\n`, exit: 0 })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([])
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(6)
    const into = await redrive(['import', file, '--store', other])
    expect(into).toEqual({ out: '3 letters added.\n', err: '', exit: 0 })
    const stored = await redrive(['export', '--store', other])
    const withoutHeader = (text: string): string[] => text.split('\n').slice(1, -2)
    expect(withoutHeader(stored.out)).toEqual(withoutHeader(readFileSync(file, 'utf8')))
    const again = await redrive(['import', '-', '--json', '--store', other], { input: stored.out })
    expect(JSON.parse(again.out)).toEqual({
      complete: true,
      letters: 3,
      added: 0,
      existing: 3,
      damaged: { first: [], count: 0 },
      problems: { first: [], count: 0 },
    })
  })

  it('writes matching letters to standard output, after an id', async () => {
    const url = await aStoreFile(folder, letters)
    const queue = await redrive(['export', '--queue', 'orders', '--store', url])
    expect(queue.out.match(/"letter":\{"id":"[^"]*/g)).toEqual([
      `"letter":{"id":"${letters[1]!.id}`,
    ])
    const rest = await redrive(['export', '--after', letters[1]!.id, '--store', url])
    expect(rest.out).toMatch(/\n\{"letters":0,/)
  })

  it.each(['SIGINT', 'SIGTERM'])(
    'keeps the old file on %s, and continues with --resume',
    async (signal) => {
      const many = Array.from({ length: 1200 }, () => aLetter())
      const url = await aStoreFile(folder, many)
      const file = join(folder, `${signal}.jsonl`)
      writeFileSync(file, 'the old one')
      // Sends the signal right after the unfinished file is created.
      const interrupted = `
      import fs from 'node:fs'
      import { syncBuiltinESMExports } from 'node:module'
      const { openSync } = fs
      fs.openSync = (path, ...rest) => {
        const descriptor = openSync(path, ...rest)
        if (String(path).endsWith('.part')) process.kill(process.pid, '${signal}')
        return descriptor
      }
      syncBuiltinESMExports()`
      const env = {
        NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(interrupted)}`,
      }
      const stopped = await redriveProcess(['export', file, '--store', url], { env })
      expect(stopped).toMatchObject({ out: '', exit: 130 })
      expect(stopped.err).toContain('Continue with the same command and --resume.')
      expect(readFileSync(file, 'utf8')).toBe('the old one')
      const begun = await redrive(['export', file, '--store', url])
      expect(begun).toMatchObject({ exit: 2 })
      expect(begun.err).toContain('add --resume to continue it, or remove it')
      const resumed = await redrive(['export', file, '--resume', '--store', url])
      expect(resumed).toMatchObject({ out: `1,200 letters written to ${file}.\n`, exit: 0 })
      const checked = await redrive(['import', file, '--verify-only'])
      expect(checked.out).toBe('1,200 letters checked.\n')
    },
  )

  it('continues an unfinished file after its last complete line', async () => {
    const url = await aStoreFile(folder, letters)
    const [file, whole] = [join(folder, 'cut.jsonl'), join(folder, 'whole.jsonl')]
    await redrive(['export', whole, '--store', url])
    const lines = readFileSync(whole, 'utf8').split('\n')
    writeFileSync(`${file}.part`, `${lines[0]}\n${lines[1]}\n${lines[2]!.slice(0, 40)}`)
    const other = await redrive(['export', file, '--resume', '--queue', 'orders', '--store', url])
    expect(other).toMatchObject({ exit: 2 })
    expect(other.err).toContain('repeat the options of that export')
    const { exit } = await redrive(['export', file, '--resume', '--store', url])
    expect(exit).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(readFileSync(whole, 'utf8'))
    expect(readdirSync(folder)).not.toContain('cut.jsonl.part')
  })

  it.each([
    [['--format', 'xml'], 'unknown format "xml"'],
    [['--resume'], '--resume needs a file'],
    [['f', '--resume', '--after', 'x'], 'omit --after'],
    [['--after', 'x'], 'after must be the id of a letter, got "x"'],
    [['--after', 'x', '--format', 'operations'], '--after needs --format lines'],
  ])('rejects %j', async (args, message) => {
    const url = await aStoreFile(folder, letters)
    const { err, exit } = await redrive(['export', ...args, '--store', url])
    expect(err).toContain(message)
    expect(exit).toBe(2)
  })
})

describe('import', () => {
  const exported = async (): Promise<string[]> => {
    const { out } = await redrive(['export', '--store', await aStoreFile(folder, letters)])
    return out.trimEnd().split('\n')
  }

  it('names a damaged line, and skips it only with --skip-damaged', async () => {
    const lines = await exported()
    const input = `${lines.with(1, lines[1]!.replace('"version":1', '"version":2')).join('\n')}\n`
    const url = `sqlite:${join(folder, 'partly.db')}`
    const refused = await redrive(['import', '-', '--store', url], { input })
    expect(refused.err).toContain('INVALID_INPUT: line 2: it is damaged: its checksum is wrong')
    expect(refused).toMatchObject({ out: '', exit: 2 })
    const skipped = await redrive(['import', '-', '--skip-damaged', '--store', url], { input })
    expect(skipped).toEqual({
      out: '1 letter added.\n',
      err: 'line 2: it is damaged: its checksum is wrong\n',
      exit: 2,
    })
  })

  it.each([
    ['', 'not an export of letters: it is empty'],
    ['{"letters":1}\n', 'line 1: '],
    ['hello\n', 'line 1: it is not JSON'],
  ])('creates no store for invalid input: %j', async (input, message) => {
    const url = `sqlite:${join(folder, 'not-made.db')}`
    const { err, exit } = await redrive(['import', '-', '--store', url], { input })
    expect(err).toContain(message)
    expect(exit).toBe(2)
    expect(readdirSync(folder)).not.toContain('not-made.db')
  })
})

describe('export of operations', () => {
  it('writes a file that only its owner can read and that import reads back', async () => {
    const [url, other] = [await aStoreFile(folder, letters), await aStoreFile(folder, [])]
    const file = join(folder, 'out.json')
    expect(await exportOperations([file, '--store', url])).toEqual({
      out: `2 letters written to ${file}.\n`,
      err: '',
      exit: 0,
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
    expect((await redrive(['import', file, '--store', other])).out).toBe('2 letters added.\n')
    const again = await exportOperations(['--store', other])
    expect(again.out).toBe(readFileSync(file, 'utf8'))
  })

  it('writes matching letters to standard output', async () => {
    const url = await aStoreFile(folder, letters)
    const { out } = await exportOperations(['--queue', 'orders', '--store', url])
    expect(JSON.parse(out)).toMatchObject([{ id: letters[1]!.id, status: 'abandoned' }])
    expect((await exportOperations(['--queue', 'none', '--store', url])).out).toBe('[]\n')
  })

  it('rejects a path whose folder does not exist', async () => {
    const url = await aStoreFile(folder, letters)
    const file = join(folder, 'nowhere', 'out.json')
    const { err, exit } = await exportOperations([file, '--store', url])
    expect(err).toBe(
      `INVALID_INPUT: cannot write ${file}: its folder does not exist: create it, or correct the path\n`,
    )
    expect(exit).toBe(2)
  })

  it('writes to the target of a symbolic link, and keeps the link', async () => {
    const url = await aStoreFile(folder, letters)
    const [file, link] = [join(folder, 'real.json'), join(folder, 'link.json')]
    writeFileSync(file, 'the old one')
    symlinkSync('real.json', link)
    expect(await exportOperations([link, '--store', url])).toMatchObject({ err: '', exit: 0 })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveLength(2)
  })

  it('rejects a dangling symbolic link, and keeps it', async () => {
    const url = await aStoreFile(folder, letters)
    const link = join(folder, 'dangling.json')
    symlinkSync('not-yet.json', link)
    expect(await exportOperations([link, '--store', url])).toEqual({
      out: '',
      err: `INVALID_INPUT: cannot write ${link}: it is a link to a file that does not exist: name the target of the link\n`,
      exit: 2,
    })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
  })

  it('does not replace a pipe, a device or a folder with a file', async () => {
    const url = await aStoreFile(folder, letters)
    const [pipe, inner] = [join(folder, 'pipe'), join(folder, 'inner')]
    runSync('mkfifo', [pipe])
    mkdirSync(inner)
    expect(await exportOperations([pipe, '--store', url])).toEqual({
      out: '',
      err: `INVALID_INPUT: cannot write ${pipe}: it is not a regular file: use standard output, such as redrive export > ${pipe}\n`,
      exit: 2,
    })
    expect(statSync(pipe).isFIFO()).toBe(true)
    expect((await exportOperations([inner, '--store', url])).err).toBe(
      `INVALID_INPUT: cannot write ${inner}: it is a folder: name a file in it\n`,
    )
  })

  it.each(['SIGINT', 'SIGTERM'])(
    'keeps the old file and removes its temporary file on %s',
    async (signal) => {
      const many = Array.from({ length: 2000 }, () => aLetter())
      const url = await aStoreFile(folder, many)
      const file = join(folder, `${signal}.json`)
      writeFileSync(file, 'the old one')
      // Sends the signal right after the temporary file is created.
      const interrupted = `
      import fs from 'node:fs'
      import { syncBuiltinESMExports } from 'node:module'
      const { openSync } = fs
      fs.openSync = (path, ...rest) => {
        const descriptor = openSync(path, ...rest)
        if (String(path).endsWith('.tmp')) process.kill(process.pid, '${signal}')
        return descriptor
      }
      syncBuiltinESMExports()`
      const env = {
        NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(interrupted)}`,
      }
      const args = ['export', '--format', 'operations', file, '--store', url]
      const { out, exit } = await redriveProcess(args, { env })
      expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
      expect(readFileSync(file, 'utf8')).toBe('the old one')
      expect({ out, exit }).toEqual({ out: '', exit: 130 })
    },
  )
})

describe('import of operations', () => {
  it('creates the store, and reports unreadable items', async () => {
    const file = join(folder, 'in.json')
    const item = {
      id: 'dlq_1',
      enqueuedAt: 1,
      status: 'queued',
      error: { message: 'm' },
      operation: { type: 'q' },
    }
    writeFileSync(file, JSON.stringify([item, { ...item, id: 'dlq_2', status: hostileText }]))
    const url = `sqlite:${join(folder, 'made.db')}`
    const first = await redrive(['import', file, '--store', url])
    expect(first).toMatchObject({ out: '1 letter added.\n', exit: 2 })
    expect(first.err).toMatch(/^item 1: status must be /)
    const again = await redrive(['import', '-', '--json', '--store', url], {
      input: JSON.stringify([item]),
    })
    expect(JSON.parse(again.out)).toEqual({ added: 0, duplicates: 1, problems: [] })
    expect(again.exit).toBe(0)
  })

  it.each([
    ['[{"id":"cut', 'INVALID_INPUT: not an operation file: it is not JSON, or it is truncated'],
    ['[]{', 'INVALID_INPUT: not an operation file: it is not JSON'],
    ['[{"id":"dlq_1"}]', 'item 0: enqueuedAt is missing'],
  ])('creates no store for invalid input: %s', async (input, message) => {
    const { err, exit } = await redrive(
      ['import', '-', '--store', `sqlite:${join(folder, 'unmade.db')}`],
      { input },
    )
    expect(err).toContain(message)
    expect(exit).toBe(2)
    expect(readdirSync(folder)).not.toContain('unmade.db')
  })

  it('rejects a missing file', async () => {
    const { err, exit } = await redrive([
      'import',
      join(folder, 'nothing.json'),
      '--store',
      `sqlite:${join(folder, 'x.db')}`,
    ])
    expect(err).toMatch(/^INVALID_INPUT: cannot read /)
    expect(exit).toBe(2)
    expect(readdirSync(folder)).not.toContain('x.db')
  })
})

import { execFileSync } from 'node:child_process'
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
import { aFolder, aStoreFile, hostileText, redrive } from '../run-cli.ts'

const folder = aFolder()
const letters = [
  aLetter({ queue: 'charge-card', payload: encodePayload({ hostileText }) }),
  aLetter({
    queue: 'orders',
    payload: encodePayload(new Uint8Array([1, 0, 255])),
    state: 'exhausted',
  }),
]

describe('export', () => {
  it('writes a file that only its owner can read and that import reads back', async () => {
    const [url, other] = [await aStoreFile(folder, letters), await aStoreFile(folder, [])]
    const file = join(folder, 'out.json')
    expect(await redrive(['export', file, '--store', url])).toEqual({
      out: `2 letters written to ${file}.\n`,
      err: '',
      exit: 0,
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
    expect((await redrive(['import', file, '--store', other])).out).toBe('2 letters added.\n')
    const again = await redrive(['export', '--store', other])
    expect(again.out).toBe(readFileSync(file, 'utf8'))
  })

  it('writes matching letters to standard output', async () => {
    const url = await aStoreFile(folder, letters)
    const { out } = await redrive(['export', '--queue', 'orders', '--store', url])
    expect(JSON.parse(out)).toMatchObject([{ id: letters[1]!.id, status: 'abandoned' }])
    expect((await redrive(['export', '--queue', 'none', '--store', url])).out).toBe('[]\n')
  })

  it('rejects a path whose folder does not exist', async () => {
    const url = await aStoreFile(folder, letters)
    const file = join(folder, 'nowhere', 'out.json')
    const { err, exit } = await redrive(['export', file, '--store', url])
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
    expect(await redrive(['export', link, '--store', url])).toMatchObject({ err: '', exit: 0 })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveLength(2)
  })

  it('rejects a dangling symbolic link, and keeps it', async () => {
    const url = await aStoreFile(folder, letters)
    const link = join(folder, 'dangling.json')
    symlinkSync('not-yet.json', link)
    expect(await redrive(['export', link, '--store', url])).toEqual({
      out: '',
      err: `INVALID_INPUT: cannot write ${link}: it is a link to a file that does not exist: name the target of the link\n`,
      exit: 2,
    })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
  })

  it('does not replace a pipe, a device or a folder with a file', async () => {
    const url = await aStoreFile(folder, letters)
    const [pipe, inner] = [join(folder, 'pipe'), join(folder, 'inner')]
    execFileSync('mkfifo', [pipe])
    mkdirSync(inner)
    expect(await redrive(['export', pipe, '--store', url])).toEqual({
      out: '',
      err: `INVALID_INPUT: cannot write ${pipe}: it is not a regular file: use standard output, such as redrive export > ${pipe}\n`,
      exit: 2,
    })
    expect(statSync(pipe).isFIFO()).toBe(true)
    expect((await redrive(['export', inner, '--store', url])).err).toBe(
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
      const { out, exit } = await redrive(['export', file, '--store', url], { env })
      expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
      expect(readFileSync(file, 'utf8')).toBe('the old one')
      expect({ out, exit }).toEqual({ out: '', exit: 130 })
    },
  )
})

describe('import', () => {
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
    ['', 'INVALID_INPUT: not an operation file: it is empty'],
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

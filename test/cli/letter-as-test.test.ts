import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatAsTest } from '../../src/cli/letter-as-test.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { encodePayload } from '../../src/letter/payload.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { run } from '../processes.ts'
import { aFolder, aStoreFile, hostileText, redrive } from './run-cli.ts'

const root = join(import.meta.dirname, '../..')
const at = '2026-01-01T00:00:00.000Z'
const hostile =
  '\'"`${process.exit(1)}` */ /* // <!-- \\ \u2028 \u2029 \ud800 \r\n \u202e \u{e0001} </script>'

function letterWith(payload: unknown, fields: Partial<DeadLetter> = {}): DeadLetter {
  return aLetter({
    queue: `q ${hostile.replaceAll(/\p{Cc}/gu, '')}`.toWellFormed(),
    payload: encodePayload(payload),
    headers: { [hostile]: hostile },
    failure: { name: hostile, message: hostile, code: hostile, status: 503, causes: [], at },
    ...fields,
  })
}

interface Printed {
  payload: unknown
  headers: unknown
  message: string
  failure: unknown
  handle: (payload: unknown, headers: unknown) => Promise<unknown>
}

/** Runs the file as a module, without its test. */
async function evaluate(letter: DeadLetter): Promise<Printed> {
  const file = formatAsTest(letter)
  const imports = "import { expect, it } from 'vitest'"
  expect(file).toContain(imports)
  const code = `${file.replace(imports, 'const it = () => {}')}
export { payload, headers, message, failure, handle }`
  const module = stripTypeScriptTypes(code)
  const url = `data:text/javascript;base64,${Buffer.from(module).toString('base64')}`
  return (await import(/* @vite-ignore */ url)) as Printed
}

const wellFormed = hostile.toWellFormed()
const folder = aFolder()

describe('formatAsTest', () => {
  it('prints a file that vitest runs', { timeout: 120_000 }, async () => {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const file = formatAsTest(letterWith({ [hostile]: [hostile] }))
    writeFileSync(join(folder, 'letter.test.ts'), file)
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const report = join(folder, 'report.json')
    const args = [vitest, 'run', '--root', folder, '--reporter=json', `--outputFile=${report}`]
    await run(process.execPath, args, { cwd: folder })
    const result: unknown = JSON.parse(readFileSync(report, 'utf8'))
    expect(result).toMatchObject({ numPassedTests: 1, numFailedTests: 0 })
  })

  it('keeps payload, headers and failure, whatever they contain', async () => {
    const { payload, headers, message, failure, handle } = await evaluate(
      letterWith({ [hostile]: [hostile, null, 1.5] }),
    )
    expect(payload).toEqual({ [hostile]: [hostile, null, 1.5] })
    expect(headers).toEqual({ [hostile]: hostile })
    expect(message).toBe(hostile)
    expect(failure).toEqual({ name: hostile, code: hostile, status: 503 })
    await expect(handle(payload, headers)).rejects.toMatchObject({ message, name: hostile })
  })

  it.each<[string, DeadLetter, unknown]>([
    ['text', letterWith(0, { payload: encodePayload(wellFormed, 'text/plain') }), wellFormed],
    [
      'broken JSON',
      letterWith(0, { payload: encodePayload('{"a":`', 'application/json') }),
      '{"a":`',
    ],
    ['bytes', letterWith(new Uint8Array([0, 255])), Buffer.of(0, 255)],
    [
      '__proto__',
      letterWith(JSON.parse('{"__proto__":{"a":1}}')),
      JSON.parse('{"__proto__":{"a":1}}'),
    ],
    ['a number', letterWith(7), 7],
  ])('keeps a payload that is %s', async (_name, letter, expected) => {
    const { payload } = await evaluate(letter)
    expect(payload).toEqual(expected)
    if (typeof expected === 'object') expect(JSON.stringify(payload)).toBe(JSON.stringify(expected))
  })

  it('keeps any JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ stringUnit: 'binary' }), async (value) => {
        const json = JSON.stringify({ value })
        const stored = encodePayload(json, 'application/json')
        const { payload } = await evaluate(letterWith(0, { payload: stored }))
        expect(payload).toEqual(JSON.parse(json))
      }),
      { numRuns: 30 },
    )
  })

  it('decodes a JS value with the package', () => {
    const file = formatAsTest(letterWith({ at: new Date(0), password: 'hunter2' }))
    expect(file).toContain("import { decodePayload } from 'redrive'")
    expect(file).not.toContain('hunter2')
  })

  it('masks secrets in the payload, the headers and the message', async () => {
    const failure = { name: 'Error', message: 'bad token=hunter2', causes: [], at }
    const letter = letterWith(
      { password: 'hunter2', to: 'mia' },
      {
        headers: { Authorization: 'Bearer hunter2', a: 'b' },
        failure,
      },
    )
    expect(formatAsTest(letter)).not.toContain('hunter2')
    expect(await evaluate(letter)).toMatchObject({
      payload: { password: '[masked]', to: 'mia' },
      headers: { Authorization: '[masked]', a: 'b' },
      message: 'bad token=[masked]',
    })
  })
})

describe('redrive show --as-test', () => {
  it('prints the file of one letter', async () => {
    const letter = aLetter({ payload: encodePayload({ note: hostileText }) })
    const store = await aStoreFile(folder, [letter, aLetter()])
    const { out, exit } = await redrive(['show', letter.id, '--as-test', '--store', store])
    expect({ out, exit }).toEqual({ out: `${formatAsTest(letter)}\n`, exit: 0 })
    const two = await redrive(['show', letter.id, letter.id, '--as-test', '--store', store])
    expect(two).toMatchObject({ exit: 2, out: '' })
    expect(two.err).toContain('--as-test prints one letter')
  })
})

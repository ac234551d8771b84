import { describe, expect, it } from 'vitest'
import type { LetterView } from '../../src/api/index.ts'
import { quoteShell, toCurl, toTest } from '../../web/src/format/letter-code.ts'
import { runSync } from '../processes.ts'

const hostile = [
  `'; rm -rf / #`,
  `$(touch /tmp/x) \`id\` $HOME !!`,
  `"quoted" \\' \\" \\\\`,
  'line\nbreak\r\nand\ttab',
  '*/ process.exit() /*',
  '${process.exit()}',
  '</script><script>alert(1)</script>',
  '\u2028 and \u2029 end a line',
  'null \0 and \u0007',
  '-H @/etc/passwd',
  'אבג 😀',
]

function aLetter(text: string, payload: Partial<LetterView['payload']> = { json: { text } }) {
  return {
    id: '01a1ef66-89ca-72d3-800a-415d18914724',
    queue: text,
    tenant: text,
    headers: { 'x-a': text },
    failure: { name: text, message: text, code: text, causes: [], at: '2026-01-01T00:00:00.000Z' },
    payload: { contentType: 'text/plain', size: 1, version: 1, ...payload },
  }
}

/** Runs the generated test with a handler, and returns the payload that the handler got. */
async function runTest(code: string): Promise<unknown> {
  const body = code
    .split('\n')
    .filter((line) => !line.startsWith('import '))
    .join('\n')
  let payload: unknown
  let run: (() => Promise<void>) | undefined
  const expectThat = () => ({ resolves: { not: { toThrow: () => Promise.resolve() } } })
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  const define = new Function('it', 'expect', 'handler', body) as (...args: unknown[]) => void
  define(
    (_title: string, test: () => Promise<void>) => (run = test),
    expectThat,
    (value: unknown) => (payload = value),
  )
  await run?.()
  return payload
}

/** The arguments that a shell passes on. `curl` is a function that prints them. */
function argumentsOf(command: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\nREDRIVE_TOKEN=token\n${command}`
  return runSync('sh', ['-c', script]).split('\0').slice(0, -1)
}

describe('toTest', () => {
  it.each(hostile)('passes the payload to the handler and runs nothing else: %j', async (text) => {
    expect(await runTest(toTest(aLetter(text)))).toEqual({ text })
    expect(await runTest(toTest(aLetter(text, { text })))).toBe(text)
  })

  it('has two imports and no other code before the test', () => {
    for (const text of hostile) {
      const lines = toTest(aLetter(text)).split(/[\r\n\u2028\u2029]/)
      expect(lines.slice(0, 5).map((line) => line.slice(0, 7))).toEqual([
        'import ',
        'import ',
        '',
        '// It f',
        "it('han",
      ])
      expect(lines).toHaveLength(9)
    }
  })

  it('passes bytes as a buffer', async () => {
    expect(await runTest(toTest(aLetter('a', { base64: 'AAEC' })))).toEqual(Buffer.from([0, 1, 2]))
  })
})

describe('toCurl', () => {
  it.each(hostile.filter((text) => !text.includes('\0')))(
    'sends the failure and runs nothing else: %j',
    (text) => {
      const args = argumentsOf(toCurl(aLetter(text), 'http://127.0.0.1:7400'))
      expect(args.slice(0, 6)).toEqual([
        'http://127.0.0.1:7400/api/capture',
        '-H',
        'Authorization: Bearer token',
        '-H',
        'Content-Type: application/json',
        '--data-binary',
      ])
      expect(args).toHaveLength(7)
      expect(JSON.parse(args[6]!)).toEqual({
        queue: text,
        json: { text },
        error: { name: text, message: text, code: text },
        headers: { 'x-a': text },
        tenant: text,
      })
    },
  )

  it('sends text and bytes with their content type', () => {
    const bodyOf = (payload: Partial<LetterView['payload']>): unknown =>
      JSON.parse(argumentsOf(toCurl(aLetter('a', payload), ''))[6]!)
    expect(bodyOf({ text: 't' })).toMatchObject({ text: 't', contentType: 'text/plain' })
    expect(bodyOf({ base64: 'AAEC' })).toMatchObject({ base64: 'AAEC', contentType: 'text/plain' })
  })
})

describe('quoteShell', () => {
  it('keeps single quotes', () => {
    expect(quoteShell("it's")).toBe(`'it'\\''s'`)
  })
})

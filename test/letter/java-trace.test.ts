import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJavaTrace, simpleName } from '../../src/letter/java-trace.ts'
import { springTrace } from '../taps/kafka-headers.ts'

const typesIn = (trace: string): string[] => readJavaTrace(trace).map(({ type }) => type)

describe('readJavaTrace', () => {
  it('returns each throwable with its message and its lines, outermost first', () => {
    const thrown = readJavaTrace(springTrace)
    expect(thrown.map(({ type, message }) => [simpleName(type), message])).toEqual([
      ['ListenerExecutionFailedException', 'Listener failed'],
      ['TimestampedException', 'Exception thrown at 2026-11-17T15:48:28.630954976Z'],
      ['IllegalStateException', 'the bank did not answer'],
      ['SocketTimeoutException', 'Read timed out'],
    ])
    expect(thrown.at(-1)!.stack).toBe(
      'java.net.SocketTimeoutException: Read timed out\n\t... 27 more',
    )
    expect(thrown[0]!.stack).not.toContain('Caused by')
  })

  it('reads messages of several lines and empty messages', () => {
    const trace =
      'a.First: one\n two\n\nthree\n\tat a.B.c(B.java:1)\nCaused by: a.Second\n\t... 1 more'
    expect(readJavaTrace(trace)).toMatchObject([
      { type: 'a.First', message: 'one\n two\n\nthree' },
      { type: 'a.Second', message: '' },
    ])
  })

  it('omits suppressed exceptions and their causes', () => {
    const trace =
      'a.First: one\n\tat a.B.c(B.java:1)\n\tSuppressed: a.Other: two\n\t\tat a.B.d(B.java:2)\n\tCaused by: a.Another\n\t\t... 1 more\nCaused by: a.Second: three\n\t... 1 more\n'
    expect(typesIn(trace)).toEqual(['a.First', 'a.Second'])
  })

  it('reads CRLF line endings', () => {
    const trace = 'a.First: one\r\n\tat a.B.c(B.java:1)\r\nCaused by: a.Second\r\n\t... 1 more\r\n'
    expect(readJavaTrace(trace)).toMatchObject([
      { type: 'a.First', message: 'one' },
      { type: 'a.Second', message: '' },
    ])
  })

  it.each([
    ['a stack of JavaScript', new Error('no').stack!],
    ['words', 'it failed\nCaused by: a.B: c'],
    ['nothing', ''],
    ['frames alone', '\n\tat a.B.c(B.java:1)'],
    ['a class name that is too long', `${'a'.repeat(400)}: b\n\tat a.B.c(B.java:1)`],
  ])('returns nothing for %s', (_, text) => {
    expect(readJavaTrace(text)).toEqual([])
  })

  it('limits the number of throwables and the length of lines and messages', () => {
    const cause = 'Caused by: a.Cause: x\n\t... 1 more\n'
    const many = `a.First: x\n\tat a.B.c(B.java:1)\n${cause.repeat(100_000)}`
    expect(readJavaTrace(many)).toHaveLength(50)
    const long = `a.First: ${'x'.repeat(1_000_000)}\n\tat a.B.c(B.java:1)\n`
    expect(readJavaTrace(long)).toEqual([])
    const lines = `a.First: x\n${'y\n'.repeat(50_000)}\tat a.B.c(B.java:1)\n`
    expect(readJavaTrace(lines)[0]!.message.length).toBeLessThanOrEqual(8 * 1024)
  })

  it('never throws for any string', () => {
    const line = fc.constantFrom(
      '\n',
      '\tat ',
      'Caused by: ',
      '\t... 3 more',
      'a.B: ',
      '\r',
      'x',
      '$.',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(line, fc.string())), (parts) => {
        const trace = parts.join('')
        for (const { type, stack } of readJavaTrace(trace)) {
          expect(type).not.toBe('')
          expect(trace).toContain(stack)
        }
      }),
    )
  })
})

describe('simpleName', () => {
  it.each([
    ['java.net.SocketTimeoutException', 'SocketTimeoutException'],
    ['com.acme.Billing$Declined', 'Declined'],
    ['Plain', 'Plain'],
    ['...', '...'],
    ['', ''],
  ])('of %j is %j', (type, name) => {
    expect(simpleName(type)).toBe(name)
  })
})

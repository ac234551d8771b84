import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toFailure } from '../../src/letter/failure.ts'
import type { Failure } from '../../src/letter/letter.ts'
import { explainFingerprint, fingerprint } from '../../src/policy/fingerprint.ts'
import { hash64 } from '../../src/policy/hash.ts'
import { corpus } from '../../src/testing/corpus/corpus.ts'
import { reviveError } from '../../src/testing/corpus/revive.ts'

const at = '2025-01-01T00:00:00.000Z'

function failureOf(over: Partial<Failure> = {}): Failure {
  return { name: 'Error', message: '', causes: [], at, ...over }
}

function print(over: Partial<Failure>, queue = 'orders'): string {
  return fingerprint(queue, failureOf(over)).value
}

interface Frame {
  name: string
  folder: string
  file: string
  line: number
  column: number
}

function stackOf(frames: readonly Frame[], head = 'Error: no'): string {
  const lines = frames.map(
    ({ name, folder, file, line, column }) =>
      `    at ${name} (${folder}/${file}:${line}:${column})`,
  )
  return [head, ...lines].join('\n')
}

const charge: Frame = {
  name: 'charge',
  folder: 'file:///app/src',
  file: 'pay.ts',
  line: 12,
  column: 5,
}
const settle: Frame = {
  name: 'async Orders.settle',
  folder: '/app/src',
  file: 'orders.ts',
  line: 3,
  column: 1,
}
const ticks: Frame = {
  name: 'process.ticks',
  folder: 'node:internal',
  file: 'queues',
  line: 105,
  column: 5,
}
const retry: Frame = {
  name: 'async run',
  folder: '/app/node_modules/p-retry',
  file: 'index.js',
  line: 7,
  column: 1,
}

describe('fingerprint', () => {
  it('is short, versioned, and lists the parts that it used', () => {
    const stack = stackOf([charge])
    expect(fingerprint('orders', failureOf({ stack, code: 'E1', status: 500 }))).toEqual({
      value: expect.stringMatching(/^v1-[0-9a-f]{16}$/) as string,
      version: 1,
      used: ['queue', 'name', 'code', 'status', 'frames'],
    })
    const wrapped = failureOf({ causes: [failureOf({ causes: [failureOf({ code: 'E2' })] })] })
    expect(fingerprint('orders', wrapped).used).toEqual(['queue', 'name', 'cause-code', 'message'])
  })

  it('does not change between versions', () => {
    expect(print({ message: 'user 42 not found' })).toBe('v1-d690d5c0f70fd55e')
    expect(print({ name: 'TypeError', code: 'E1', stack: stackOf([charge, settle]) })).toBe(
      'v1-daeff9c02e4d842e',
    )
  })

  it.each<[string, string]>([
    ['order 8123 not found', 'order 9 not found'],
    ['took 1,234.56 ms', 'took 3 ms'],
    ['at -5 degrees', 'at 1e+300 degrees'],
    [
      'user 550e8400-e29b-41d4-a716-446655440000 is gone',
      'user aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee is gone',
    ],
    ['commit deadbeef is bad', 'commit 0a1b2c3d4e5f60718293 is bad'],
    ['no field "name" here', 'no field "a much longer name" here'],
    ["can't open 'a b.txt'", "can't open 'c.txt'"],
    ['key `x` is taken', 'key `y z` is taken'],
    ['no mail to alice@example.com', 'no mail to bob.smith+news@mail.example.co.uk'],
    [
      'GET https://api.example.com/v1/orders/17?page=2 failed',
      'GET https://api.example.com/v2/orders/ab12?q=x failed',
    ],
    ['cannot read /home/alice/in/a.csv now', 'cannot read /tmp/b.csv now'],
    ['cannot read C:\\Users\\alice\\a.csv now', 'cannot read D:\\b.csv now'],
    ['at 2025-01-01T10:00:00.000Z', 'at 2024-12-31T23:59:59Z'],
    ['connect to 10.0.0.1:5432 refused', 'connect to 192.168.1.20:6543 refused'],
    ['ids 1, 2, 3 are taken', 'ids 7 are taken'],
    ['a  b\n c', 'a b c'],
    ['No Such Thing', 'no such thing'],
  ])('is the same for %j and %j', (one, other) => {
    expect(print({ message: one })).toBe(print({ message: other }))
  })

  it.each<[string, string]>([
    ['order not found', 'user not found'],
    ['and/or', 'and'],
    ['GET https://a.example.com/x failed', 'GET https://b.example.com/x failed'],
    ["the user's card", "the user's account"],
  ])('differs for %j and %j', (one, other) => {
    expect(print({ message: one })).not.toBe(print({ message: other }))
  })

  it('distinguishes queues, names, codes, statuses and frames', () => {
    const base: Partial<Failure> = { name: 'A', code: 'x', status: 500, stack: stackOf([charge]) }
    const prints = [
      print(base),
      print(base, 'mails'),
      print({ ...base, name: 'B' }),
      print({ ...base, code: 'y' }),
      print({ ...base, status: 404 }),
      print({ ...base, stack: stackOf([{ ...charge, name: 'refund' }]) }),
      print({ ...base, stack: stackOf([{ ...charge, file: 'bill.ts' }]) }),
      print({ ...base, stack: stackOf([charge, settle]) }),
      print({ name: 'A', code: 'x', status: 500 }),
    ]
    expect(new Set(prints).size).toBe(prints.length)
  })

  it('separates its parts unambiguously', () => {
    expect(print({ name: 'a', code: 'b' })).not.toBe(print({ name: 'a\ncode\nb' }))
    expect(print({ name: 'b' }, 'a')).not.toBe(print({ name: '' }, 'a\nb'))
  })

  it('ignores lines, folders, the message, recursion and foreign frames', () => {
    const expected = print({ message: 'one', stack: stackOf([charge, settle]) })
    const same: Frame[][] = [
      [{ ...charge, line: 99, column: 1 }, settle],
      [{ ...charge, folder: '/srv/releases/42/src' }, settle],
      [{ ...charge, folder: 'C:\\app\\src\\' }, settle],
      [charge, charge, charge, settle],
      [ticks, charge, ticks, retry, settle, ticks],
      [{ ...charge, name: 'async charge' }, settle],
    ]
    for (const frames of same)
      expect(print({ message: 'two', stack: stackOf(frames) })).toBe(expected)
  })

  it('ignores the hash of a bundler in a file name', () => {
    const built = (file: string): string => print({ stack: stackOf([{ ...charge, file }]) })
    expect(built('index-B7x0q3Zk.js')).toBe(built('index-9fA2kkPw.js'))
    expect(built('main.4f3a9c1d2b.js')).toBe(built('main.0011223344.js'))
    expect(built('order-service.ts')).not.toBe(built('order-handlers.ts'))
  })

  it('uses the message if the stack has no frame in user code', () => {
    const { used, value } = fingerprint(
      'orders',
      failureOf({ message: 'x 1', stack: stackOf([ticks, retry]) }),
    )
    expect(used).toContain('message')
    expect(value).toBe(print({ message: 'x 2', stack: 'Error: x 2' }))
  })

  it('handles messages that look like a stack or are very long', () => {
    const stackLike = 'oops\n    at evil (/x/evil.ts:1:1)'
    const plain = print({ message: 'a', stack: stackOf([charge], 'Error: a') })
    expect(print({ message: stackLike, stack: stackOf([charge], `Error: ${stackLike}`) })).toBe(
      plain,
    )
    const long = 'word '.repeat(1600)
    expect(print({ message: long, stack: stackOf([charge], `Error: ${long}`) })).toBe(plain)
  })

  it('distinguishes the places where errors are thrown', () => {
    const here = (id: number): Failure => toFailure(new RangeError(`no ${id}`), at)
    const there = (id: number): Failure => toFailure(new RangeError(`no ${id}`), at)
    const prints = [here(1), here(2), there(1)].map((failure) => fingerprint('orders', failure))
    expect(prints[0]!.used).toContain('frames')
    expect(prints[0]!.value).toBe(prints[1]!.value)
    expect(prints[0]!.value).not.toBe(prints[2]!.value)
  })

  it('is stable for any id, number, quoted string or address', () => {
    const word = fc.stringMatching(/^[a-z]{1,7}$/)
    const varying = fc.oneof(
      fc.uuid(),
      fc.integer().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
      fc.stringMatching(/^[0-9a-f]{8,40}$/),
      fc.stringMatching(/^[a-z]{1,5}_[0-9]{1,9}$/),
      fc.stringMatching(/^[^"]{0,40}$/).map((text) => `"${text}"`),
      fc.emailAddress().filter((mail) => /^[\w.+-]+@/.test(mail)),
      fc.stringMatching(/^(\/[\w.-]{1,8}){1,5}$/),
    )
    fc.assert(
      fc.property(word, varying, varying, word, (before, one, other, after) => {
        const say = (what: string): string => print({ message: `${before} ${what} ${after}` })
        expect(say(one)).toBe(say(other))
      }),
    )
  })

  it('is stable when lines and folders change, and differs between functions', () => {
    const names = fc.stringMatching(/^[a-zA-Z][a-zA-Z.]{0,20}$/)
    const lines = fc.integer({ min: 1, max: 99_999 })
    const folders = fc.stringMatching(/^(\/[a-z]{1,8}){1,4}$/)
    const moves = fc.record({ line: lines, column: lines, folder: folders })
    fc.assert(
      fc.property(names, names, moves, moves, (name, other, one, two) => {
        const at = (frame: Partial<Frame>): string =>
          print({ stack: stackOf([{ ...charge, ...frame }]) })
        expect(at({ ...one, name })).toBe(at({ ...two, name }))
        if (name !== other) expect(at({ ...one, name })).not.toBe(at({ ...one, name: other }))
      }),
    )
  })

  it('works for anything that can be thrown', () => {
    fc.assert(
      fc.property(fc.anything(), fc.string(), (thrown, queue) => {
        expect(fingerprint(queue, toFailure(thrown, at)).value).toMatch(/^v1-[0-9a-f]{16}$/)
      }),
    )
  })

  it('reads only the beginning of hostile strings', () => {
    for (const piece of [
      'a',
      '"',
      "'",
      '`',
      '@',
      '-',
      '1',
      '/',
      '?',
      '#',
      '\\',
      'a.',
      ' ',
      '\n    at x',
      ':1',
      ' (',
    ]) {
      const hostile = piece.repeat(1_000_000 / piece.length)
      const longer = `${hostile} and more`
      expect(print({ message: hostile })).toBe(print({ message: longer }))
      expect(print({ stack: hostile })).toBe(print({ stack: longer }))
    }
  })
})

describe('explainFingerprint', () => {
  it.each(corpus)('has the parts that the fingerprint of "$title" is the hash of', (one) => {
    const failure = toFailure(reviveError(one.error), at)
    const { value, used } = fingerprint('work', failure)
    const reasons = explainFingerprint('work', failure)
    expect(reasons.value).toBe(value)
    expect(reasons.parts.map(({ part }) => part)).toEqual(used)
    const text = reasons.parts.map((one) => `${one.part} ${one.value.length} ${one.value}`).join('')
    expect(`v1-${hash64(text)}`).toBe(value)
  })

  it('names the frames that count and those that do not', () => {
    const stack = stackOf([ticks, charge, charge, settle])
    expect(explainFingerprint('orders', failureOf({ stack })).frames).toEqual([
      { frame: 'process.ticks (node:internal/queues:105:5)', used: false },
      { frame: 'charge (file:///app/src/pay.ts:12:5)', used: true },
      { frame: 'charge (file:///app/src/pay.ts:12:5)', used: false },
      { frame: 'async Orders.settle (/app/src/orders.ts:3:1)', used: true },
    ])
  })

  it('names the masked parts of the message, and nothing else is masked', () => {
    const message = 'user 42 <a@b.example> not in /var/db of "x"'
    const { masked, parts } = explainFingerprint('orders', failureOf({ message }))
    expect(masked).toEqual(['42', 'a@b.example', '/var/db', '"x"'])
    expect(parts.at(-1)).toEqual({ part: 'message', value: 'user # <#> not in # of #' })
  })
})

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { springTrace } from '../taps/kafka-headers.ts'
import { toFailure } from '../../src/letter/failure.ts'
import type { Failure } from '../../src/letter/letter.ts'
import { letterFromJson, letterToJson } from '../../src/letter/schema.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { hostileErrors } from './hostile.ts'

const at = '2026-01-01T00:00:00.000Z'
const failureOf = (thrown: unknown): Failure => toFailure(thrown, at)
const withFields = (fields: object): Failure => failureOf(Object.assign(new Error('x'), fields))

/** Checks what holds for every failure. */
function expectValid(failure: Failure): void {
  const json = JSON.stringify(failure)
  expect(json.isWellFormed()).toBe(true)
  expect(json.length).toBeLessThan(250_000)
  const back = letterFromJson(JSON.parse(JSON.stringify(letterToJson(aLetter({ failure })))))
  expect(back).toMatchObject({ ok: true, letter: { failure } })
  const levels = (nodes: Failure[], depth: number): void => {
    expect(nodes.length).toBeLessThanOrEqual(5)
    if (nodes.length === 0) return
    expect(depth).toBeLessThanOrEqual(5)
    levels(
      nodes.flatMap((node) => node.causes),
      depth + 1,
    )
  }
  levels(failure.causes, 1)
}

describe('toFailure', () => {
  it.each(hostileErrors)('converts $name', ({ make }) => {
    expectValid(failureOf(make()))
  })

  it('converts any value', () => {
    const traps = ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'] as const
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      key: fc.oneof(
        fc.string(),
        fc.constantFrom(
          'message',
          'stack',
          'name',
          'cause',
          'errors',
          'code',
          'response',
          'headers',
        ),
      ),
    })
    fc.assert(
      fc.property(anything, fc.subarray([...traps]), (target, throwing) => {
        const boom = (): never => {
          throw target
        }
        const handler = Object.fromEntries(throwing.map((trap) => [trap, boom]))
        const isObject = typeof target === 'object' && target !== null
        for (const thrown of [target, isObject ? new Proxy(target, handler) : undefined])
          expect(JSON.stringify(failureOf(thrown)).isWellFormed()).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it('keeps name, message, code and stack of an ordinary error', () => {
    const error = Object.assign(new TypeError('it broke'), { code: 'E_BROKE' })
    const { stack } = error
    expect(failureOf(error)).toEqual({
      name: 'TypeError',
      message: 'it broke',
      code: 'E_BROKE',
      stack,
      causes: [],
      at,
    })
  })

  it('names an error by its class when it has no name of its own', () => {
    class PaymentDeclined extends Error {}
    expect(failureOf(new PaymentDeclined('no')).name).toBe('PaymentDeclined')
    expect(failureOf(new Error('no')).name).toBe('Error')
    expect(failureOf(new DOMException('late', 'TimeoutError'))).toMatchObject({
      name: 'TimeoutError',
    })
    expect(failureOf(new DOMException('late', 'TimeoutError'))).not.toHaveProperty('code')
  })

  it.each([
    [null, 'null', 'null'],
    [undefined, 'undefined', 'undefined'],
    ['str', 'string', 'str'],
    [0, 'number', '0'],
    [7n, 'bigint', '7'],
    [Symbol('s'), 'symbol', 'Symbol(s)'],
    [{}, 'object', '{}'],
    [{ a: 1, b: 'c', d: [1] }, 'object', '{a: 1, b: "c", d: […]}'],
    [{ message: 'like an error', name: 'Odd' }, 'Odd', 'like an error'],
    [[1, 'a'], 'Array', '[1, "a"]'],
    [function named() {}, 'function', 'function named'],
  ])('describes %o', (thrown, name, message) => {
    expect(failureOf(thrown)).toEqual({ name, message, causes: [], at })
  })

  it('truncates long strings with a mark and the original length', () => {
    const { message, stack, name, code } = withFields({
      message: 'm'.repeat(10_485_760),
      stack: 's'.repeat(20_000),
      name: 'n'.repeat(1000),
      code: 'c'.repeat(1000),
    })
    expect(message).toBe(`${'m'.repeat(8192)}… [cut, 10485760 characters]`)
    expect(stack).toBe(`${'s'.repeat(16_384)}… [cut, 20000 characters]`)
    expect(name).toBe(`${'n'.repeat(200)}… [cut, 1000 characters]`)
    expect(code).toBe(`${'c'.repeat(100)}… [cut, 1000 characters]`)
  })

  it('does not split a surrogate pair', () => {
    const { message } = failureOf(new Error(`${'m'.repeat(8191)}🦊🦊`))
    expect(message).toBe(`${'m'.repeat(8191)}… [cut, 8195 characters]`)
  })

  it('replaces lone surrogates and keeps control characters', () => {
    expect(failureOf(new Error('a\ud800b\0c\u202ed🦊')).message).toBe('a\ufffdb\0c\u202ed🦊')
  })

  it('reads the causes of a Java stack trace below the line with the error name', () => {
    const timeout = { name: 'SocketTimeoutException', message: 'Read timed out', causes: [] }
    const inner = { name: 'IllegalStateException', message: 'the bank did not answer' }
    const thrown = (name: string): Failure => failureOf({ name, message: 'x', stack: springTrace })
    expect(thrown('IllegalStateException').causes).toMatchObject([timeout])
    expect(thrown('ListenerExecutionFailedException').causes).toMatchObject([
      { name: 'TimestampedException', causes: [{ ...inner, causes: [timeout] }] },
    ])
    expect(thrown('Error').causes).toMatchObject([{ name: 'TimestampedException' }])
    // Its own cause and errors take precedence.
    const own = failureOf({
      name: 'Error',
      message: 'x',
      stack: springTrace,
      cause: new Error('own'),
    })
    expect(own.causes).toMatchObject([{ message: 'own', causes: [] }])
    expect(
      failureOf(Object.assign(new Error('x'), { errors: [], stack: springTrace })).causes,
    ).toEqual([])
  })

  it('keeps the first and the last of many causes of a Java stack trace', () => {
    const cause = (n: number): string => `Caused by: a.Cause${n}: ${n}\n\t... 1 more\n`
    const all = Array.from({ length: 20 }, (_, n) => cause(n)).join('')
    const stack = `a.First: x\n\tat a.B.c(B.java:1)\n${all}`
    const names: string[] = []
    for (
      let next = failureOf({ name: 'First', message: 'x', stack }).causes[0];
      next;
      next = next.causes[0]
    )
      names.push(next.name)
    expect(names).toEqual(['Cause0', 'Cause1', 'Cause17', 'Cause18', 'Cause19'])
  })

  it('keeps causes, nearest first, including primitives', () => {
    const error = new Error('top', { cause: new Error('middle', { cause: 'the root' }) })
    const { causes } = failureOf(error)
    expect(causes).toMatchObject([
      { message: 'middle', at, causes: [{ name: 'string', message: 'the root', causes: [] }] },
    ])
  })

  it.each(['error', 'original', 'originalError', 'driverError', 'parent'])(
    'finds an error wrapped in the property %s',
    (key) => {
      const inner = new Error('inside')
      expect(withFields({ [key]: inner }).causes).toMatchObject([{ message: 'inside' }])
      const failure = failureOf(
        Object.assign(new Error('x', { cause: 'nearer' }), { [key]: inner }),
      )
      expect(failure.causes.map(({ message }) => message)).toEqual(['nearer'])
      expect(withFields({ [key]: { message: 'a body, no error' } }).causes).toEqual([])
    },
  )

  it('stops at a cyclic cause', () => {
    const error = new Error('first')
    error.cause = new Error('second', { cause: error })
    expect(failureOf(error)).toMatchObject({
      message: 'first',
      causes: [{ message: 'second [its cause leads back to itself]', causes: [] }],
    })
  })

  it('keeps five levels of causes and notes that there are more', () => {
    let error = new Error('link 7')
    for (let link = 6; link >= 0; link--) error = new Error(`link ${link}`, { cause: error })
    const messages: string[] = []
    for (let at: Failure | undefined = failureOf(error); at; at = at.causes[0])
      messages.push(at.message)
    expect(messages).toEqual([
      'link 0',
      'link 1',
      'link 2',
      'link 3',
      'link 4',
      'link 5 [1 more cause left out]',
    ])
  })

  it('keeps five members of an AggregateError and notes how many there were', () => {
    const members = Array.from({ length: 100_000 }, (_, index) => new Error(`member ${index}`))
    const failure = failureOf(new AggregateError(members, 'all failed'))
    expect(failure.message).toBe('all failed [99995 more causes left out]')
    expect(failure.causes.map((cause) => cause.message)).toEqual(
      members.slice(0, 5).map((member) => member.message),
    )
  })

  it('bounds the total size for any tree of causes', () => {
    const bushy = hostileErrors.find(({ name }) => name.startsWith('aggregates'))!
    expectValid(failureOf(bushy.make()))
  })

  it.each([
    [{ status: 503 }, 503],
    [{ statusCode: 429 }, 429],
    [{ response: { status: 404 } }, 404],
    [{ response: { statusCode: 500 } }, 500],
    [{ status: 'down', statusCode: 502 }, 502],
    [{ status: 99 }, undefined],
    [{ status: 600 }, undefined],
    [{ status: 200.5 }, undefined],
    [{ status: '503' }, undefined],
    [{ response: null }, undefined],
    [{ $metadata: { httpStatusCode: 400 } }, 400],
    [{ $metadata: { attempts: 1 }, $response: { statusCode: 503 } }, 503],
  ])('reads the status of %o', (fields, status) => {
    expect(withFields(fields).status).toBe(status)
  })

  it.each([
    [{ code: 'ECONNRESET' }, 'ECONNRESET'],
    [{ code: 14 }, '14'],
    [{ code: '' }, undefined],
    [{ code: { nested: true } }, undefined],
    [{ type: 'overloaded_error' }, 'overloaded_error'],
    [{ code: null, type: 'server_error' }, 'server_error'],
    [{ code: 5, type: 'LEADER_NOT_AVAILABLE' }, 'LEADER_NOT_AVAILABLE'],
    [{ code: 'card_declined', type: 'card_error' }, 'card_declined'],
    [{ code: 'PLT_KFK_PROTOCOL', apiId: 'NOT_ENOUGH_REPLICAS' }, 'NOT_ENOUGH_REPLICAS'],
    [{ error: { type: 'error', error: { type: 'rate_limit_error' } } }, 'rate_limit_error'],
    [{ error: { type: 'api_error' } }, 'api_error'],
    [{ type: 'system' }, undefined],
    [{ type: 'an error of some_kind' }, undefined],
    [{ code: null, signal: 'SIGTERM' }, 'SIGTERM'],
    [{ signal: 'stop' }, undefined],
    [{ signal: AbortSignal.abort() }, undefined],
  ])('reads the code of %o', (fields, code) => {
    expect(withFields(fields).code).toBe(code)
  })

  const usedUp = (remaining: string, reset: string): Record<string, string> => ({
    'x-ratelimit-remaining': remaining,
    'x-ratelimit-reset': reset,
  })
  const thirtyDaysMs = 30 * 24 * 3_600_000
  it.each([
    [{ retryAfterMs: 1500 }, 1500],
    [{ retryAfterMs: 0 }, 0],
    [{ retryAfter: 2 }, 2000],
    [{ retryAfter: 0.25 }, 250],
    [{ retryAfter: '7' }, 7000],
    [{ response: { headers: { 'retry-after': '120' } } }, 120_000],
    [{ response: { headers: { 'Retry-After': '3' } } }, 3000],
    [{ response: { headers: { 'RETRY-AFTER': ['4', '5'] } } }, 4000],
    [{ response: { headers: new Map([['Retry-After', '6']]) } }, 6000],
    [{ response: { headers: new Headers({ 'Retry-After': '8' }) } }, 8000],
    [{ headers: new Headers({ 'retry-after': '9' }) }, 9000],
    [{ headers: { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' } }, 60_000],
    [{ headers: { 'retry-after': 'Thursday, 01-Jan-26 00:01:00 GMT' } }, 60_000],
    [{ headers: { 'retry-after': 'Wed, 31 Dec 2025 23:59:00 GMT' } }, undefined],
    [{ headers: { 'retry-after': 'in the year 2099 GMT' } }, undefined],
    [{ headers: { 'retry-after': '-5' } }, undefined],
    [{ headers: { 'retry-after': '' } }, undefined],
    [{ headers: { 'retry-after': '9'.repeat(101) } }, undefined],
    [{ headers: { 'x-other': '1' } }, undefined],
    [{ headers: { 'retry-after': '2', 'retry-after-ms': '1500' } }, 1500],
    [{ headers: { 'retry-after': '2', 'retry-after-ms': 'soon' } }, 2000],
    [{ $response: { headers: { 'retry-after': '5' } } }, 5000],
    [{ status: 403, headers: usedUp('0', '1767225900') }, 300_000],
    [{ status: 429, headers: usedUp('0', '1767225900') }, 300_000],
    [{ status: 429, headers: usedUp('0', '1767225900000') }, 300_000],
    [{ status: 429, headers: usedUp('0', '1767225000000') }, 0],
    [{ status: 429, headers: usedUp('0', '30') }, 30_000],
    [{ status: 429, headers: usedUp('0', '1767225000') }, 0],
    [{ status: 429, headers: usedUp('0', 'soon') }, undefined],
    [{ status: 429, headers: usedUp('', '30') }, undefined],
    [{ status: 403, headers: usedUp('4990', '1767225900') }, undefined],
    [{ status: 404, headers: usedUp('0', '1767225900') }, undefined],
    [{ status: 429, headers: { ...usedUp('0', '30'), 'retry-after': '7' } }, 7000],
    [{ message: 'Too Many Requests: retry after 30' }, 30_000],
    [{ message: 'Please try again in 1.5s.' }, 1500],
    [{ message: 'try again in 250ms' }, 250],
    [{ message: 'Retry after 2 minutes' }, 120_000],
    [{ message: 'Please try again in 1m26.4s.' }, 86_400],
    [{ message: 'try again in 1h2m3s' }, 3_723_000],
    [{ message: 'try again in 2 hours.' }, 7_200_000],
    [{ message: 'try again in 1 hour and 5 minutes, 3 attempts left' }, 3_900_000],
    [{ message: 'retry after 5s 2 of 3' }, 5000],
    [{ message: 'retry after 5 2 minutes ago' }, 5000],
    [{ message: 'try again in 1 day' }, 86_400_000],
    [{ message: 'gave up, no retry after 3 attempts' }, undefined],
    [{ message: 'try again in 2027-01-01' }, undefined],
    [{ message: 'try again later' }, undefined],
    [{ retryAfterMs: -1 }, undefined],
    [{ retryAfterMs: Number.NaN }, undefined],
    [{ retryAfterMs: -1, retryAfter: 3 }, 3000],
    [{ retryAfter: Infinity }, thirtyDaysMs],
    [{ retryAfter: 1e12 }, thirtyDaysMs],
  ])('reads the retry delay of %o', (fields, ms) => {
    expect(withFields(fields).retryAfterMs).toBe(ms)
  })

  it('is not affected by later changes of the error', () => {
    const error = new Error('before', { cause: new Error('cause') })
    const failure = failureOf(error)
    const copy = structuredClone(failure)
    error.message = 'after'
    ;(error.cause as Error).message = 'after'
    expect(failure).toEqual(copy)
  })
})

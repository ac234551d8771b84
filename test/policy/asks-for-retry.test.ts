import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { asksForRetry } from '../../src/policy/asks-for-retry.ts'
import { hostileErrors } from '../letter/hostile.ts'

describe('asksForRetry', () => {
  it.each<[string, unknown, boolean]>([
    ['a plain error', new Error('x'), false],
    ['AWS, throttled', { $retryable: { throttling: true } }, true],
    ['Kafka', { retriable: true }, true],
    ['Kafka, of which it makes no sense', { retriable: false }, false],
    ['a method of that name', { isRetryable: () => true }, false],
    ['a string of that name', { retryable: 'true' }, false],
    ['MongoDB', { errorLabels: ['RetryableWriteError'] }, true],
    ['another label', { errorLabels: ['ResetPool'] }, false],
    ['a header', { headers: new Headers({ 'x-should-retry': 'true' }) }, true],
    ['a header that says no', { headers: new Headers({ 'x-should-retry': 'false' }) }, false],
    ['a header of the answer', { response: { headers: { 'X-Should-Retry': 'true' } } }, true],
    ['a cause', new Error('x', { cause: { canRetry: true } }), true],
    ['a member', new AggregateError([new Error('x'), { canRetry: true }]), true],
  ])('reads %s', (_, thrown, answer) => {
    expect(asksForRetry(thrown)).toBe(answer)
  })

  it.each(hostileErrors.filter(({ name }) => name !== 'a bottomless cause'))(
    'finds nothing in $name',
    ({ make }) => {
      expect(asksForRetry(make())).toBe(false)
    },
  )

  it('never throws', () => {
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        expect(typeof asksForRetry(thrown)).toBe('boolean')
      }),
    )
  })
})

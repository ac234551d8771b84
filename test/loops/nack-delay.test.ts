import { expect, it } from 'vitest'
import type { Failure } from '../../src/letter/letter.ts'
import { nackDelay, defaultBackoff } from '../../src/loops/nack-delay.ts'
import { exponential, immediate, never } from '../../src/policy/backoff.ts'

const failure: Failure = { name: 'Error', message: '', causes: [], at: '2026-01-01T00:00:00.000Z' }
const random = (): number => 0.5

it.each([
  [1, 60],
  [2, 120],
  [14, 840],
  [15, 900],
  [16, 900],
  [1e9, 900],
  [0, 60],
])('hides a message after %d failures for %d s', (failures, seconds) => {
  expect(nackDelay({ backoff: defaultBackoff, failures, failure, random })).toEqual({ seconds })
})

it('uses the delay that the failure asks for if it is longer, up to twelve hours', () => {
  const wait = (retryAfterMs: number): number =>
    nackDelay({
      backoff: immediate(),
      failures: 1,
      failure: { ...failure, retryAfterMs },
      random,
    }).seconds
  expect(wait(1500)).toBe(1.5)
  expect(wait(20 * 3_600_000)).toBe(43_200)
})

it('hides for twelve hours if the backoff says never or exceeds the limit of brokers', () => {
  const of = (backoff: ReturnType<typeof never>): number =>
    nackDelay({ backoff, failures: 40, failure, random }).seconds
  expect(of(never())).toBe(43_200)
  expect(of(exponential({ maxMs: 40 * 3_600_000 }))).toBe(43_200)
})

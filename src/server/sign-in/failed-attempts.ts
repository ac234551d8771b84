import { isIPv6 } from 'node:net'
import type { Clock } from '../../clock/clock.ts'
import { tooManyRequests } from '../problems.ts'
import { RateLimiter } from './rate-limiter.ts'

/** Somebody who copies a wrong token tries it a few times. */
const perAddress = { perSecond: 0.5, burst: 30 }
const inTotal = { perSecond: 20, burst: 600 }

/**
 * Limits attempts with a wrong token or code, by address and in total. Valid ones are never limited
 * here, so that nobody can lock others out, not even from the same address.
 */
export class FailedAttempts {
  readonly #byAddress: RateLimiter
  readonly #total: RateLimiter

  constructor(clock: Clock) {
    this.#byAddress = new RateLimiter(clock, perAddress)
    this.#total = new RateLimiter(clock, inTotal)
  }

  /** Counts an attempt. Rejects if there were too many. */
  count(address: string): void {
    const waitMs = this.#byAddress.take(networkOf(address)) || this.#total.take('')
    if (waitMs > 0)
      throw tooManyRequests(
        'too many requests with a wrong token or code: wait as Retry-After says, and check the token',
        waitMs,
      )
  }
}

/** Whoever has one IPv6 address has the 2^64 addresses of its network as well. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (ipv4) return ipv4[1]!
  const [head, tail] = address.split('::')
  const groups = (text = ''): string[] => (text === '' ? [] : text.split(':'))
  const zeros = Math.max(0, 8 - groups(head).length - groups(tail).length)
  const all = [...groups(head), ...Array<string>(zeros).fill('0'), ...groups(tail)]
  return all.slice(0, 4).join(':')
}

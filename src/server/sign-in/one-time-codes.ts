import type { Clock } from '../../clock/clock.ts'
import { createSecret } from '../../clock/secret.ts'
import { isSame } from '../tokens.ts'
import type { Caller } from '../caller.ts'

const validMs = 10 * 60_000
/** Codes that wait for their use. A new one replaces the oldest. */
const maxCodes = 100

interface WaitingCode {
  code: string
  caller: Caller
  untilMs: number
}

/**
 * Codes that sign in one browser each. They are part of an address that the server prints, so that
 * nobody has to copy a token. A code is valid once, for 10 minutes, in the process that created it.
 */
export class OneTimeCodes {
  readonly #clock: Clock
  #waiting: WaitingCode[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A new code. Whoever sends it signs in as this caller. */
  create(caller: Caller): string {
    const code = createSecret(32)
    this.#waiting.push({ code, caller, untilMs: this.#clock.mono() + validMs })
    this.#waiting = this.#waiting.slice(-maxCodes)
    return code
  }

  /** Uses a code up, and returns its caller. Undefined: it is unknown, used or too old. */
  use(code: string): Caller | undefined {
    const nowMs = this.#clock.mono()
    // All codes are compared, so that the time does not tell which one was close.
    const found = this.#waiting.filter((one) => isSame(one.code, code))
    this.#waiting = this.#waiting.filter((one) => nowMs < one.untilMs && !found.includes(one))
    return found.find(({ untilMs }) => nowMs < untilMs)?.caller
  }
}

import { sleep, type Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'

export interface Message {
  body: string
  /** Made anew for each try. */
  headers: () => Record<string, string>
}

export interface SenderOptions {
  /** What it sends to, for people: "webhook". */
  what: string
  url: URL
  timeoutMs: number
  clock: Clock
}

interface Waiting {
  message: Message
  done: () => void
  fail: (error: Error) => void
}

type Try = { sent: true } | { sent: false; why: string; again: boolean; afterMs?: number }

const maxWaiting = 100
const maxTries = 4
const retryDelay = { firstMs: 1000, maxMs: 60_000, factor: 4 }

/**
 * Posts messages to one address, one at a time and in order, so that what clears an alert never comes before what raised
 * it. Whoever sends waits for nothing. Errors name the host and nothing else of the address, and hold nothing of an
 * answer: either may be a secret.
 */
export class Sender {
  readonly #options: SenderOptions
  readonly #waiting: Waiting[] = []
  #sending: Promise<void> | undefined
  #dropped = 0
  #overflowing = false

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** Messages that had to make room for newer ones. */
  get dropped(): number {
    return this.#dropped
  }

  /**
   * Resolves when the other side has taken it, and rejects when it is given up. Of the messages that are dropped while too
   * many wait, the first rejects; the others are only counted.
   */
  send(message: Message): Promise<void> {
    return new Promise((done, fail) => {
      if (this.#waiting.length >= maxWaiting) this.#drop()
      this.#waiting.push({ message, done, fail })
      this.#sending ??= this.#drain()
    })
  }

  /** Resolves when nothing waits and nothing is on its way. */
  async idle(): Promise<void> {
    await this.#sending
  }

  /** The oldest goes: the newest says how things stand now. */
  #drop(): void {
    const oldest = this.#waiting.shift()
    this.#dropped += 1
    if (this.#overflowing) oldest?.done()
    else
      oldest?.fail(
        this.#reportError(`more than ${maxWaiting} notifications wait, the oldest are dropped`),
      )
    this.#overflowing = true
  }

  async #drain(): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      const problem = await this.#deliver(next.message)
      if (problem) next.fail(problem)
      else next.done()
    }
    this.#overflowing = false
    this.#sending = undefined
  }

  async #deliver(message: Message): Promise<Error | undefined> {
    const { clock } = this.#options
    const backoff = new Backoff(clock, retryDelay)
    for (let tries = 1; ; tries++) {
      const result = await this.#try(message)
      if (result.sent) return undefined
      if (!result.again) return this.#reportError(result.why)
      if (tries === maxTries)
        return this.#reportError(`${result.why}, given up after ${tries} tries`)
      const delayMs = Math.max(backoff.nextMs(), result.afterMs ?? 0)
      await sleep(clock, Math.min(retryDelay.maxMs, delayMs))
    }
  }

  async #try({ body, headers }: Message): Promise<Try> {
    const { url, timeoutMs, clock } = this.#options
    const abort = new AbortController()
    const cancel = clock.timer(timeoutMs, () => abort.abort())
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers(), 'content-type': 'application/json' },
        body,
        redirect: 'manual',
        signal: abort.signal,
      })
      // What it says is of no use, and may have no end.
      await answer.body?.cancel()
      return judged(answer)
    } catch (error) {
      const why = abort.signal.aborted
        ? `no answer within ${timeoutMs} ms`
        : `cannot be reached${codeOf(error)}`
      return { sent: false, why, again: true }
    } finally {
      cancel()
    }
  }

  #reportError(why: string): Error {
    return new Error(`${this.#options.what} at ${this.#options.url.host}: ${why}`)
  }
}

function judged({ ok, status, headers }: Response): Try {
  if (ok) return { sent: true }
  const again = status === 429 || status >= 500
  const moved = status >= 300 && status < 400
  const why = `answered ${status}${moved ? ', and redirects are not followed' : ''}`
  const seconds = Number(headers.get('retry-after') ?? 0)
  return { sent: false, why, again, ...(seconds > 0 ? { afterMs: seconds * 1000 } : {}) }
}

/** The system's name for it, as in ECONNREFUSED. */
function codeOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  const code = cause?.code
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''
}

import { sleep, type Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'

export interface Message {
  body: string
  /** Created for each attempt. */
  headers: () => Record<string, string>
}

export interface SenderOptions {
  /** Kind of receiver: "webhook". */
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
 * Posts messages to one URL, one at a time and in order, so that an alert is never cleared before
 * it is raised. Callers do not wait. Errors contain only the host of the URL and nothing of a
 * response: either may be a secret.
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

  /** Messages that were dropped in favour of newer ones. */
  get dropped(): number {
    return this.#dropped
  }

  /**
   * Resolves when the receiver has accepted the message, and rejects after the last attempt. If
   * messages are dropped because too many wait, the first rejects; the others are only counted.
   */
  send(message: Message): Promise<void> {
    return new Promise((done, fail) => {
      if (this.#waiting.length >= maxWaiting) this.#drop()
      this.#waiting.push({ message, done, fail })
      this.#sending ??= this.#drain()
    })
  }

  /** Resolves when no message waits or is in flight. */
  async idle(): Promise<void> {
    await this.#sending
  }

  /** Drops the oldest message: the newest has the current state. */
  #drop(): void {
    const oldest = this.#waiting.shift()
    this.#dropped += 1
    if (this.#overflowing) oldest?.done()
    else
      oldest?.fail(
        this.#reportError(
          `more than ${maxWaiting} notifications are waiting, the oldest are dropped`,
        ),
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
        return this.#reportError(`${result.why}, given up after ${tries} attempts`)
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
      // The body is not needed, and may be endless.
      await answer.body?.cancel()
      return judged(answer)
    } catch (error) {
      const why = abort.signal.aborted
        ? `no response within ${timeoutMs} ms`
        : `unreachable${codeOf(error)}`
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

/** The code of a system error, such as ECONNREFUSED. */
function codeOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  const code = cause?.code
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''
}

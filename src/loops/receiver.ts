import { sleep, type Clock } from '../clock/clock.ts'
import { endsWithin } from '../clock/ends-within.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds, whole } from '../backends/bounds.ts'
import { renamedReceiving } from './check-options.ts'
import type { Tell } from './events.ts'
import { Heartbeat } from './heartbeat.ts'
import { HeldMessage } from './held-message.ts'
import { LeaseExtender } from './lease-extender.ts'
import type { RunOptions, ShutdownOptions } from './runnable.ts'
import { settle } from './settling.ts'

export interface Receiving {
  /** Messages at a time. 1 unless said. */
  concurrency?: number
  /** How long a message is hidden from others, and how long each extension lasts. 300 unless said. */
  visibilitySeconds?: number
  /** How long to wait for a message in one call. 20 unless said. */
  waitSeconds?: number
  /** Beats of the work extend its lease at most so often, or three times in `visibilitySeconds` where that is shorter. A minute unless said. */
  extendEveryMs?: number
}

export const receivingKeys = keysOf<Receiving>({
  concurrency: true,
  visibilitySeconds: true,
  waitSeconds: true,
  extendEveryMs: true,
})
const runKeys = keysOf<RunOptions>({
  maxIterations: true,
  visibilitySeconds: true,
  waitSeconds: true,
})
export const shutdownKeys = keysOf<ShutdownOptions>({ timeoutMs: true })

export interface ReceiverOptions extends Receiving {
  mailbox: Mailbox
  clock: Clock
  tell: Tell
  /** Deals with one message. What it throws is a bug, and ends the run. */
  attend: (held: HeldMessage) => Promise<void>
}

const pauses = { firstMs: 1000, longestMs: 30_000, idleMs: 100 }
const largestBatch = 10

/**
 * Receives messages into free slots, holds their leases, and stops in good order. It asks for as many as it can begin at once, so no
 * message waits behind another while its lease runs. A mailbox that cannot be reached is asked again after a pause that grows to 30 s; the
 * heartbeat goes on meanwhile, and `problems` says why nothing comes.
 */
export class Receiver {
  readonly heartbeat: Heartbeat
  readonly #options: Required<ReceiverOptions>
  readonly #extender: LeaseExtender
  readonly #held = new Map<HeldMessage, Promise<void>>()
  #stopping = new AbortController()
  #run: Promise<void> | undefined
  #latched = false
  #slotFree: (() => void) | undefined
  /** Resolves the run although some work has not ended. */
  #giveUp: (() => void) | undefined
  #leftBehind = false
  #crash: { error: unknown } | undefined
  #problem: string | undefined

  constructor(options: ReceiverOptions) {
    const { concurrency = 1, visibilitySeconds = 300, waitSeconds = 20 } = options
    const { extendEveryMs = 60_000, clock, tell, mailbox } = options
    this.#options = { ...options, concurrency, visibilitySeconds, waitSeconds, extendEveryMs }
    whole('concurrency', concurrency, 1000)
    bounded('extendEveryMs', extendEveryMs, Infinity)
    checkTimes(this.#options)
    const onError = (error: unknown): void =>
      tell({ type: 'error', during: `heartbeat of ${mailbox.name}`, error })
    this.heartbeat = new Heartbeat(clock, onError)
    this.#extender = new LeaseExtender({
      clock,
      intervalMs: extendEveryMs,
      extensionSeconds: visibilitySeconds,
      onError: (error) =>
        tell({ type: 'error', during: `extension of a lease of ${mailbox.name}`, error }),
    })
  }

  get running(): boolean {
    return this.#run !== undefined
  }

  problems(): string[] {
    return this.#problem === undefined ? [] : [this.#problem]
  }

  run(options: RunOptions = {}): Promise<void> {
    checkKeys('run options', options, runKeys, { renamed: renamedReceiving })
    if (this.#run)
      throw new RedriveError(
        'INVALID_INPUT',
        `the loop on ${this.#options.mailbox.name} runs already`,
      )
    if (this.#latched) {
      this.#latched = false
      return Promise.resolve()
    }
    checkTimes(this.#timesOf(options))
    bounded('maxIterations', options.maxIterations ?? Infinity, Infinity)
    this.#stopping = new AbortController()
    this.#crash = undefined
    this.#leftBehind = false
    const { mailbox, tell } = this.#options
    const unsubscribe = mailbox.on('expired', ({ count }) =>
      tell({ type: 'messages-expired', mailbox: mailbox.name, count }),
    )
    this.#run = this.#runToTheEnd(options).finally(() => {
      unsubscribe()
      this.#run = undefined
      this.#held.clear()
    })
    return this.#run
  }

  async shutdown(options: ShutdownOptions = {}): Promise<boolean> {
    checkKeys('shutdown options', options, shutdownKeys, { renamed: { timeout: 'timeoutMs' } })
    const { timeoutMs = 30_000 } = options
    bounded('timeoutMs', timeoutMs, Infinity)
    if (!this.#run) {
      this.#latched = true
      return true
    }
    const { clock } = this.#options
    const ended = this.#run.catch(() => {})
    const graceMs = Math.min(1000, timeoutMs / 4)
    this.#stopping.abort()
    if (await endsWithin(clock, ended, timeoutMs - graceMs)) return !this.#leftBehind
    for (const held of this.#held.keys()) held.stop()
    if (await endsWithin(clock, ended, graceMs)) return !this.#leftBehind
    this.#leftBehind = true
    await endsWithin(clock, this.#takeAway([...this.#held.keys()]), 1000)
    this.#giveUp?.()
    await ended
    return false
  }

  async #runToTheEnd(options: RunOptions): Promise<void> {
    const givenUp = new Promise<void>((resolve) => {
      this.#giveUp = resolve
    })
    await Promise.race([this.#receiveAll(options), givenUp])
    if (this.#crash) throw this.#crash.error
  }

  /** The life of a run: wait for a slot, receive, begin; in the end wait for what is under way. */
  async #receiveAll(options: RunOptions): Promise<void> {
    const { mailbox, concurrency } = this.#options
    const { signal } = this.#stopping
    const turns = options.maxIterations ?? Infinity
    let failures = 0
    for (let turn = 0; turn < turns && !signal.aborted && !mailbox.closed; turn++) {
      this.heartbeat.beat()
      const messages = await this.#receive(options)
      this.heartbeat.beat()
      if (messages === undefined) await this.#pause(failures++)
      else failures = 0
      if (signal.aborted) await this.#release(messages ?? [])
      else for (const message of messages ?? []) this.#begin(message, options)
      // One that stops begins no more, and the slots may be those of the next run by now.
      while (!signal.aborted && this.#held.size >= concurrency) await this.#slot()
    }
    while (this.#held.size > 0) await Promise.all(this.#held.values())
  }

  #timesOf(options: RunOptions): Times {
    return {
      visibilitySeconds: options.visibilitySeconds ?? this.#options.visibilitySeconds,
      waitSeconds: options.waitSeconds ?? this.#options.waitSeconds,
    }
  }

  /** Undefined: the mailbox could not be asked. */
  async #receive(options: RunOptions): Promise<Message[] | undefined> {
    const { mailbox, concurrency, clock, tell } = this.#options
    const { visibilitySeconds, waitSeconds } = this.#timesOf(options)
    const { signal } = this.#stopping
    const max = Math.min(concurrency - this.#held.size, largestBatch)
    try {
      const messages = await mailbox.receive({ max, visibilitySeconds, waitSeconds, signal })
      this.#problem = undefined
      // A mailbox that answers at once with nothing would be asked without end.
      if (messages.length === 0 && waitSeconds === 0 && options.maxIterations === undefined)
        await sleep(clock, pauses.idleMs, signal)
      return messages
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : 'an unknown error'
      this.#problem = `${mailbox.name} cannot be received from: ${code}`
      tell({ type: 'error', during: `receiving from ${mailbox.name}`, error })
      return undefined
    }
  }

  /** Loops that lost the same broker do not all come back at the same moment. */
  async #pause(failures: number): Promise<void> {
    const { clock } = this.#options
    const ms = Math.min(pauses.firstMs * 2 ** Math.min(failures, 10), pauses.longestMs)
    await sleep(clock, ms * (0.75 + 0.25 * clock.random()), this.#stopping.signal)
  }

  #slot(): Promise<void> {
    return new Promise((resolve) => {
      this.#slotFree = resolve
    })
  }

  #begin(message: Message, options: RunOptions): void {
    const { clock } = this.#options
    const { visibilitySeconds } = this.#timesOf(options)
    const held = new HeldMessage(message, {
      clock,
      leaseMs: visibilitySeconds * 1000,
      pulse: this.heartbeat,
      extender: this.#extender,
    })
    this.#held.set(held, this.#attend(held))
  }

  async #attend(held: HeldMessage): Promise<void> {
    try {
      await this.#options.attend(held)
    } catch (error) {
      this.#crash ??= { error }
      this.#stopping.abort()
    }
    held.letGo()
    this.#held.delete(held)
    this.heartbeat.beat()
    this.#slotFree?.()
  }

  /** What came when the loop was already stopping. */
  async #release(messages: Message[]): Promise<void> {
    for (const message of messages) await this.#giveBack(message, false)
  }

  /**
   * Whatever its handler still does: the delivery is finalised, so nothing can come of it. One that did not end when it was told to counts
   * as failed: a message whose handlers never end would come back for ever.
   */
  async #takeAway(held: HeldMessage[]): Promise<void> {
    for (const one of held) one.letGo()
    await Promise.all(held.map((one) => this.#giveBack(one.message, true)))
  }

  async #giveBack(message: Message, failed: boolean): Promise<void> {
    const { mailbox, tell } = this.#options
    if (await settle({ mailbox, message, tell }, 'giving back', () => message.nack({ failed })))
      tell({ type: 'message-released', mailbox: mailbox.name, messageId: message.id })
  }
}

type Times = Required<Pick<Receiving, 'visibilitySeconds' | 'waitSeconds'>>

function checkTimes({ visibilitySeconds, waitSeconds }: Times): void {
  bounded('visibilitySeconds', visibilitySeconds, maxVisibilitySeconds)
  bounded('waitSeconds', waitSeconds, maxVisibilitySeconds)
}

import { sleep, type Clock } from '../clock/clock.ts'
import { endsWithin } from '../clock/ends-within.ts'
import { Backoff } from '../clock/retry.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { LoopStatus } from '../letter/loop-status.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds, whole } from '../backends/bounds.ts'
import { renamedReceiving } from './check-options.ts'
import type { Emit } from './events.ts'
import { Heartbeat } from './heartbeat.ts'
import { HeldMessage } from './held-message.ts'
import { LeaseExtender } from './lease-extender.ts'
import type { RunOptions, ShutdownOptions } from './runnable.ts'
import { settle } from './settling.ts'

export interface Receiving {
  /** Messages processed at the same time. Default: 1. */
  concurrency?: number
  /**
   * How long a message is hidden from other consumers, and the length of each extension. Default:
   * 300.
   */
  visibilitySeconds?: number
  /** How long one call waits for a message. Default: 20. */
  waitSeconds?: number
  /**
   * Beats extend the lease at most this often, or three times per `visibilitySeconds` if that is
   * shorter. Default: 60,000.
   */
  extendEveryMs?: number
}

/** How many messages may start now, and how long none may. 0: until one of them ends. */
interface Admission {
  capacity(): number
  waitMs(): number
}

const unlimited: Admission = { capacity: () => Infinity, waitMs: () => 0 }

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
  emit: Emit
  /** Processes one message. An error that it throws is a bug, and ends the run. */
  handleMessage: (held: HeldMessage) => Promise<void>
  /** Default: as many as there are slots. */
  admission?: Admission
}

const failureDelay = { firstMs: 1000, maxMs: 30_000 }
const idleMs = 100
/** Interval of heartbeats while nothing may be received. */
const beatMs = 1000
const maxBatch = 10

/**
 * Receives messages into free slots, holds their leases, and stops gracefully. It requests only as
 * many messages as have a free slot, so no message waits for another while its lease runs. An
 * unreachable mailbox is polled again with a backoff of up to 30 s; the heartbeat continues
 * meanwhile, and `problems` gives the reason.
 */
export class Receiver {
  readonly heartbeat: Heartbeat
  readonly #options: Required<ReceiverOptions>
  readonly #extender: LeaseExtender
  readonly #held = new Map<HeldMessage, Promise<void>>()
  #stopping = new AbortController()
  #run: Promise<void> | undefined
  #stopRequested = false
  #onSlotFree: (() => void) | undefined
  /** Resolves the run although some work has not ended. */
  #endRun: (() => void) | undefined
  #hasAbandoned = false
  #crash: { error: unknown } | undefined
  #problem: string | undefined

  constructor(options: ReceiverOptions) {
    const { concurrency = 1, visibilitySeconds = 300, waitSeconds = 20 } = options
    const { extendEveryMs = 60_000, admission = unlimited, clock, emit, mailbox } = options
    const times = { visibilitySeconds, waitSeconds, extendEveryMs }
    this.#options = { ...options, ...times, concurrency, admission }
    whole('concurrency', concurrency, 1000)
    bounded('extendEveryMs', extendEveryMs, Infinity)
    checkTimes(this.#options)
    const onError = (error: unknown): void =>
      emit({ type: 'error', during: `heartbeat of ${mailbox.name}`, error })
    this.heartbeat = new Heartbeat(clock, onError)
    this.#extender = new LeaseExtender({
      clock,
      intervalMs: extendEveryMs,
      extensionSeconds: visibilitySeconds,
      onError: (error) =>
        emit({ type: 'error', during: `extension of a lease of ${mailbox.name}`, error }),
    })
  }

  get running(): boolean {
    return this.#run !== undefined
  }

  problems(): string[] {
    return this.#problem === undefined ? [] : [this.#problem]
  }

  status(): Pick<LoopStatus, 'mailbox' | 'broker' | 'running' | 'problem'> {
    const { name: mailbox, powers } = this.#options.mailbox
    const problem = this.#problem
    const status = { mailbox, broker: powers.kind, running: this.running }
    return problem === undefined ? status : { ...status, problem }
  }

  run(options: RunOptions = {}): Promise<void> {
    checkKeys('run options', options, runKeys, { renamed: renamedReceiving })
    if (this.#run)
      throw new RedriveError(
        'INVALID_INPUT',
        `the loop on ${this.#options.mailbox.name} is already running`,
      )
    if (this.#stopRequested) {
      this.#stopRequested = false
      return Promise.resolve()
    }
    checkTimes(this.#timesOf(options))
    bounded('maxIterations', options.maxIterations ?? Infinity, Infinity)
    this.#stopping = new AbortController()
    this.#crash = undefined
    this.#hasAbandoned = false
    const { mailbox, emit } = this.#options
    const unsubscribe = mailbox.on('expired', ({ count }) =>
      emit({ type: 'messages-expired', mailbox: mailbox.name, count }),
    )
    this.#run = this.#runUntilStopped(options).finally(() => {
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
      this.#stopRequested = true
      return true
    }
    const { clock } = this.#options
    const ended = this.#run.catch(() => {})
    const graceMs = Math.min(1000, timeoutMs / 4)
    this.#stopping.abort()
    if (await endsWithin(clock, ended, timeoutMs - graceMs)) return !this.#hasAbandoned
    for (const held of this.#held.keys()) held.stop()
    if (await endsWithin(clock, ended, graceMs)) return !this.#hasAbandoned
    this.#hasAbandoned = true
    await endsWithin(clock, this.#abandon([...this.#held.keys()]), 1000)
    this.#endRun?.()
    await ended
    return false
  }

  async #runUntilStopped(options: RunOptions): Promise<void> {
    const endedEarly = new Promise<void>((resolve) => {
      this.#endRun = resolve
    })
    await Promise.race([this.#receiveAll(options), endedEarly])
    if (this.#crash) throw this.#crash.error
  }

  /** One run: wait for a slot, receive, start; in the end wait for the work in process. */
  async #receiveAll(options: RunOptions): Promise<void> {
    const { mailbox, concurrency, admission } = this.#options
    const { signal } = this.#stopping
    const turns = options.maxIterations ?? Infinity
    const backoff = new Backoff(this.#options.clock, failureDelay)
    for (let turn = 0; turn < turns && !signal.aborted && !mailbox.closed; turn++) {
      if (admission.capacity() < 1) await this.#waitForAdmission(signal)
      if (signal.aborted) break
      this.heartbeat.beat()
      const messages = await this.#receive(options)
      this.heartbeat.beat()
      if (messages === undefined) await backoff.wait(signal)
      else backoff.reset()
      if (signal.aborted) await this.#release(messages ?? [])
      else for (const message of messages ?? []) this.#start(message, options)
      // A stopping run starts nothing more, and the slots may already belong to the next run.
      while (!signal.aborted && this.#held.size >= concurrency) await this.#waitForSlot()
    }
    while (this.#held.size > 0) await Promise.all(this.#held.values())
  }

  /** Waits as long as no message may start. */
  async #waitForAdmission(signal: AbortSignal): Promise<void> {
    const { admission, mailbox, clock } = this.#options
    while (admission.capacity() < 1 && !signal.aborted && !mailbox.closed) {
      this.heartbeat.beat()
      const waitMs = admission.waitMs()
      if (waitMs > 0) await sleep(clock, Math.min(waitMs, beatMs), signal)
      else await this.#waitForSlot()
    }
  }

  #timesOf(options: RunOptions): Times {
    return {
      visibilitySeconds: options.visibilitySeconds ?? this.#options.visibilitySeconds,
      waitSeconds: options.waitSeconds ?? this.#options.waitSeconds,
    }
  }

  /** Undefined if the mailbox is unreachable. */
  async #receive(options: RunOptions): Promise<Message[] | undefined> {
    const { mailbox, concurrency, admission, clock, emit } = this.#options
    const { visibilitySeconds, waitSeconds } = this.#timesOf(options)
    const { signal } = this.#stopping
    const max = Math.min(concurrency - this.#held.size, maxBatch, Math.max(1, admission.capacity()))
    try {
      const messages = await mailbox.receive({ max, visibilitySeconds, waitSeconds, signal })
      this.#problem = undefined
      // A mailbox that answers at once with nothing would be polled in a busy loop.
      if (messages.length === 0 && waitSeconds === 0 && options.maxIterations === undefined)
        await sleep(clock, idleMs, signal)
      return messages
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : 'an unknown error'
      this.#problem = `cannot receive from ${mailbox.name}: ${code}`
      emit({ type: 'error', during: `receiving from ${mailbox.name}`, error })
      return undefined
    }
  }

  #waitForSlot(): Promise<void> {
    return new Promise((resolve) => {
      this.#onSlotFree = resolve
    })
  }

  #start(message: Message, options: RunOptions): void {
    const { clock } = this.#options
    const { visibilitySeconds } = this.#timesOf(options)
    const held = new HeldMessage(message, {
      clock,
      leaseMs: visibilitySeconds * 1000,
      loopHeartbeat: this.heartbeat,
      extender: this.#extender,
    })
    this.#held.set(held, this.#handleMessage(held))
  }

  async #handleMessage(held: HeldMessage): Promise<void> {
    try {
      await this.#options.handleMessage(held)
    } catch (error) {
      this.#crash ??= { error }
      this.#stopping.abort()
    }
    held.release()
    this.#held.delete(held)
    this.heartbeat.beat()
    this.#onSlotFree?.()
  }

  /** Releases messages that arrived while the loop was stopping. */
  async #release(messages: Message[]): Promise<void> {
    for (const message of messages) await this.#nack(message, false)
  }

  /**
   * Finalises deliveries whatever their handlers still do, so that the handlers have no effect. A
   * delivery that did not end on its signal counts as failed: a message whose handlers never end
   * would otherwise be delivered forever.
   */
  async #abandon(held: HeldMessage[]): Promise<void> {
    for (const one of held) one.release()
    await Promise.all(held.map((one) => this.#nack(one.message, true)))
  }

  async #nack(message: Message, failed: boolean): Promise<void> {
    const { mailbox, emit } = this.#options
    if (await settle({ mailbox, message, emit }, 'releasing', () => message.nack({ failed })))
      emit({ type: 'message-released', mailbox: mailbox.name, messageId: message.id })
  }
}

type Times = Required<Pick<Receiving, 'visibilitySeconds' | 'waitSeconds'>>

function checkTimes({ visibilitySeconds, waitSeconds }: Times): void {
  bounded('visibilitySeconds', visibilitySeconds, maxVisibilitySeconds)
  bounded('waitSeconds', waitSeconds, maxVisibilitySeconds)
}

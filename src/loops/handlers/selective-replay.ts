import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { keysOf } from '../../check/keys.ts'
import type { Mailbox, Message } from '../../mailbox.ts'
import { bounded, maxVisibilitySeconds } from '../../backends/bounds.ts'
import {
  describeValue,
  optionalBoolean,
  renamedReceiving,
  requireFunction,
  requireMailbox,
} from '../check-options.ts'
import { factsOf, readDeadMessage, type DeadMessage } from '../dead-message.ts'
import { createEmit, type Emit } from '../events.ts'
import { settle, isStillOurs } from '../settling.ts'
import { checkReplayOptions, replayDead, type ReplayOptions } from './replay.ts'

export interface SelectiveReplayOptions extends ReplayOptions {
  predicate: (dead: DeadMessage) => boolean
  /** True: report the matches and send nothing. Default: false. */
  dryRun?: boolean
  /** How long messages may be held during the scan. Default: 300. */
  visibilitySeconds?: number
  /** Maximum number of messages to scan. Default: 10,000. */
  maxScanned?: number
  clock?: Clock
}

const ownKeys = keysOf<Omit<SelectiveReplayOptions, keyof ReplayOptions>>({
  predicate: true,
  dryRun: true,
  visibilitySeconds: true,
  maxScanned: true,
  clock: true,
})

export interface ReplayResult {
  /** The id of the message that died. */
  messageId: string
  outcome: 'replayed' | 'matched' | 'refused' | 'failed' | 'busy'
  why?: string
  error?: unknown
}

export interface SelectiveReplay {
  /** The number of scanned messages. */
  scanned: number
  replayed: number
  /** One result per matching message, and per message on which the predicate threw. */
  results: ReplayResult[]
  /** False if there may be more matches. */
  complete: boolean
}

/**
 * Replays the matching messages of a whole dead letter queue. Where the broker can browse, a queue
 * without a match is not touched. Messages that do not match are received at most once, held, and
 * released uncounted in their order; so are messages that could not be replayed. `busy`: the
 * message matches, but another consumer has it at present.
 */
export async function selectiveReplay(
  dlq: Mailbox,
  options: SelectiveReplayOptions,
): Promise<SelectiveReplay> {
  requireMailbox('selectiveReplay', 'dlq', dlq)
  checkReplayOptions('selectiveReplay', options, ownKeys, renamedReceiving)
  requireFunction('selectiveReplay', 'predicate', options.predicate, 'predicate: (dead) => true')
  optionalBoolean('selectiveReplay', 'dryRun', options.dryRun)
  const { visibilitySeconds = 300, maxScanned = 10_000 } = options
  bounded('visibilitySeconds', visibilitySeconds, maxVisibilitySeconds)
  bounded('maxScanned', maxScanned, Infinity)
  return new SelectiveReplayRun(dlq, options).run()
}

class SelectiveReplayRun {
  readonly #dlq: Mailbox
  readonly #options: SelectiveReplayOptions
  readonly #clock: Clock
  readonly #emit: Emit
  readonly #maxScanned: number
  readonly #report: SelectiveReplay = { scanned: 0, replayed: 0, results: [], complete: true }
  /**
   * Matches that were browsed and not yet received: message id to the id of the message that died.
   */
  readonly #matched = new Map<string, string>()
  readonly #held: Message[] = []

  constructor(dlq: Mailbox, options: SelectiveReplayOptions) {
    this.#dlq = dlq
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#emit = createEmit(options)
    this.#maxScanned = options.maxScanned ?? 10_000
  }

  async run(): Promise<SelectiveReplay> {
    const report = this.#report
    if (this.#dlq.browse) await this.#browse()
    if (!this.#dlq.browse || (this.#matched.size > 0 && !this.#options.dryRun))
      try {
        await this.#receive()
      } finally {
        await this.#releaseHeld()
      }
    const outcome = this.#options.dryRun ? 'matched' : 'busy'
    for (const messageId of this.#matched.values()) report.results.push({ messageId, outcome })
    report.replayed = report.results.filter((one) => one.outcome === 'replayed').length
    return report
  }

  async #browse(): Promise<void> {
    let after: string | undefined
    do {
      const page = await this.#dlq.browse!(after === undefined ? {} : { after })
      for (const message of page.messages) {
        if (this.#isFull()) return
        const dead = readDeadMessage(message, this.#dlq.name)
        this.#report.scanned++
        if (this.#matches(dead)) this.#matched.set(message.id, dead.messageId)
      }
      after = page.after
    } while (after !== undefined)
  }

  /**
   * Receives until all matches are found, nothing more arrives, or a held message arrives again
   * because the scan took too long.
   */
  async #receive(): Promise<void> {
    const { visibilitySeconds = 300 } = this.#options
    const browsed = this.#dlq.browse !== undefined
    // Without waiting, SQS asks only some of its servers, and an empty answer would not mean the
    // end.
    const waitSeconds = browsed ? 0 : 1
    const seen = new Set<string>()
    for (;;) {
      if (browsed && this.#matched.size === 0) return
      const messages = await this.#dlq.receive({ max: 10, visibilitySeconds, waitSeconds })
      if (messages.length === 0) return
      for (const message of messages) {
        const again = seen.has(message.id)
        seen.add(message.id)
        if (again) this.#report.complete = false
        if (again || !(await this.#replayed(message, browsed))) this.#held.push(message)
      }
      if (!this.#report.complete) return
    }
  }

  /** False if the message stays in the queue. */
  async #replayed(message: Message, browsed: boolean): Promise<boolean> {
    const dead = readDeadMessage(message, this.#dlq.name)
    if (browsed) {
      if (!this.#matched.delete(message.id)) return false
    } else {
      if (this.#isFull()) return false
      this.#report.scanned++
      if (!this.#matches(dead)) return false
      if (this.#options.dryRun) return this.#result(dead, { outcome: 'matched' })
    }
    return this.#replay(message, dead)
  }

  async #replay(message: Message, dead: DeadMessage): Promise<boolean> {
    const delivery = { mailbox: this.#dlq, message, emit: this.#emit }
    const startedMs = this.#clock.mono()
    if (!(await isStillOurs(delivery, 'replaying', this.#clock.now())))
      return this.#result(dead, { outcome: 'busy' })
    try {
      const sent = await replayDead(dead, this.#options)
      if (sent.kind === 'refused') return this.#result(dead, { outcome: 'refused', why: sent.why })
    } catch (error) {
      return this.#result(dead, { outcome: 'failed', error })
    }
    this.#emit({
      type: 'dead-letter-handled',
      ...factsOf(dead, this.#dlq.name, message.deliveries, this.#clock.now()),
      action: 'replayed',
      errorType: dead.lastErrorType,
      durationMs: this.#clock.mono() - startedMs,
    })
    this.#result(dead, { outcome: 'replayed' })
    await settle(delivery, 'acknowledging', () => message.acknowledge())
    return true
  }

  #matches(dead: DeadMessage): boolean {
    try {
      const matches: unknown = this.#options.predicate(dead)
      if (typeof matches === 'boolean') return matches
      // The promise of an async predicate would match every message.
      throw new RedriveError(
        'INVALID_INPUT',
        `predicate must return true or false, but returned ${describeValue(matches)}`,
      )
    } catch (error) {
      return this.#result(dead, { outcome: 'failed', error })
    }
  }

  #isFull(): boolean {
    if (this.#report.scanned < this.#maxScanned) return false
    this.#report.complete = false
    return true
  }

  #result(dead: DeadMessage, result: Omit<ReplayResult, 'messageId'>): false {
    this.#report.results.push({ messageId: dead.messageId, ...result })
    return false
  }

  async #releaseHeld(): Promise<void> {
    for (const message of this.#held) {
      const delivery = { mailbox: this.#dlq, message, emit: this.#emit }
      await settle(delivery, 'releasing', () => message.nack({ failed: false }))
    }
  }
}

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
import { teller, type Tell } from '../events.ts'
import { settle, stillOurs } from '../settling.ts'
import { checkReplayOptions, replayDead, type ReplayOptions } from './replay.ts'

export interface SelectiveReplayOptions extends ReplayOptions {
  predicate: (dead: DeadMessage) => boolean
  /** True: say what matches, and send nothing. */
  dryRun?: boolean
  /** How long messages may be held while the queue is gone through. 300 unless said. */
  visibilitySeconds?: number
  /** How many messages to look at. 10,000 unless said. */
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
  /** Messages that were looked at. */
  scanned: number
  replayed: number
  /** One for each message that matches, and for each on which the predicate threw. */
  results: ReplayResult[]
  /** False: there may be more that match. */
  complete: boolean
}

/**
 * Replays the messages of a dead letter queue that match, over the whole queue. Where the broker lets us browse, a queue without a match is not
 * touched. What does not match is received once at the most, held, and given back uncounted in the order it came; what could not
 * be replayed likewise. `busy`: it matches, and somebody else has it at the moment.
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
  return new Selection(dlq, options).run()
}

class Selection {
  readonly #dlq: Mailbox
  readonly #options: SelectiveReplayOptions
  readonly #clock: Clock
  readonly #tell: Tell
  readonly #maxScanned: number
  readonly #report: SelectiveReplay = { scanned: 0, replayed: 0, results: [], complete: true }
  /** Ids of matches that were browsed and not met yet, with those of the messages that died. */
  readonly #wanted = new Map<string, string>()
  readonly #held: Message[] = []

  constructor(dlq: Mailbox, options: SelectiveReplayOptions) {
    this.#dlq = dlq
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#tell = teller(options)
    this.#maxScanned = options.maxScanned ?? 10_000
  }

  async run(): Promise<SelectiveReplay> {
    const report = this.#report
    if (this.#dlq.browse) await this.#browse()
    if (!this.#dlq.browse || (this.#wanted.size > 0 && !this.#options.dryRun))
      try {
        await this.#receive()
      } finally {
        await this.#giveBack()
      }
    const outcome = this.#options.dryRun ? 'matched' : 'busy'
    for (const messageId of this.#wanted.values()) report.results.push({ messageId, outcome })
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
        if (this.#matches(dead)) this.#wanted.set(message.id, dead.messageId)
      }
      after = page.after
    } while (after !== undefined)
  }

  /** Until all matches were met, or nothing more comes, or what was held comes a second time because this took too long. */
  async #receive(): Promise<void> {
    const { visibilitySeconds = 300 } = this.#options
    const browsed = this.#dlq.browse !== undefined
    // SQS asks only some of its servers for those who do not wait, and nothing found would not be the end.
    const waitSeconds = browsed ? 0 : 1
    const met = new Set<string>()
    for (;;) {
      if (browsed && this.#wanted.size === 0) return
      const messages = await this.#dlq.receive({ max: 10, visibilitySeconds, waitSeconds })
      if (messages.length === 0) return
      for (const message of messages) {
        const again = met.has(message.id)
        met.add(message.id)
        if (again) this.#report.complete = false
        if (again || !(await this.#replayed(message, browsed))) this.#held.push(message)
      }
      if (!this.#report.complete) return
    }
  }

  /** False: it stays in the queue. */
  async #replayed(message: Message, browsed: boolean): Promise<boolean> {
    const dead = readDeadMessage(message, this.#dlq.name)
    if (browsed) {
      if (!this.#wanted.delete(message.id)) return false
    } else {
      if (this.#isFull()) return false
      this.#report.scanned++
      if (!this.#matches(dead)) return false
      if (this.#options.dryRun) return this.#result(dead, { outcome: 'matched' })
    }
    return this.#replay(message, dead)
  }

  async #replay(message: Message, dead: DeadMessage): Promise<boolean> {
    const delivery = { mailbox: this.#dlq, message, tell: this.#tell }
    const startedMs = this.#clock.mono()
    if (!(await stillOurs(delivery, 'replaying', this.#clock.now())))
      return this.#result(dead, { outcome: 'busy' })
    try {
      const sent = await replayDead(dead, this.#options)
      if (sent.kind === 'refused') return this.#result(dead, { outcome: 'refused', why: sent.why })
    } catch (error) {
      return this.#result(dead, { outcome: 'failed', error })
    }
    this.#tell({
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
      // A promise, of an async predicate, would match every message.
      throw new RedriveError(
        'INVALID_INPUT',
        `predicate returned ${describeValue(matches)}: it must return true or false`,
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

  async #giveBack(): Promise<void> {
    for (const message of this.#held) {
      const delivery = { mailbox: this.#dlq, message, tell: this.#tell }
      await settle(delivery, 'giving back', () => message.nack({ failed: false }))
    }
  }
}

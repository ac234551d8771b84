import { nextTurn, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type {
  App,
  DeadLetter,
  Payload,
  Priority,
  Reason,
  RetryPolicy,
  Source,
} from '../letter/letter.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import { decideCapture } from '../policy/decide.ts'
import type { FingerprintRule } from '../policy/fingerprint-rules.ts'
import { understand, type Understood } from '../policy/judge.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'
import { inHistory } from '../letter/history.ts'
import type { Rule } from '../policy/classify.ts'
import { maxRetriesFor, type RetryLimits } from '../policy/retry-limits.ts'
import type { AddResult, Capacity, Store } from '../store.ts'
import { describeValue } from '../check/keys.ts'
import { parseTime } from '../check/read-time.ts'
import { inSpan } from '../tracing.ts'
import { redactCaptured } from './redact-captured.ts'
import { rejectClient } from './reject-client.ts'
import { findSubject, nameSubjects, type Subjects } from './subjects.ts'
import { checkSize, metadataOf, type CaptureContext } from './context.ts'
import { addOptional } from './optional-fields.ts'
import { captureSpan, inChunkSpan, joinTrace } from './trace.ts'

export interface Captured {
  queue: string
  source: Source
  payload: Payload
  thrown: unknown
  context: CaptureContext
  /** Reason for parking, where the caller knows more than the failure shows. */
  reason?: Reason
  /** How often the work was returned to its source before. */
  replays?: number
}

/** The settings of a queue that a capture needs. */
interface QueueRules extends RetryLimits {
  priority: Priority
  backoff?: RetryPolicy
  /** The path of the data subject. */
  subject?: string
}

export interface CapturerOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  rulesFor: (queue: string) => QueueRules
  classifierRules: readonly Rule[]
  fingerprints?: readonly FingerprintRule[]
  backoffs: Record<string, (retry: number, failure: DeadLetter['failure']) => number>
  capacity: Capacity | undefined
  maxPayloadBytes: number
  /** False: nothing is stored, and every capture rejects with CAPTURE_DISABLED. Default: true. */
  enabled?: boolean
  /** Names data subjects. Default: letters do not name theirs. */
  subjects?: Subjects
  /** What is hidden of the letters of a queue. Default: nothing. */
  redactionFor?: (queue: string) => Redaction | undefined
  /** The program that captures. Default: letters do not name it. */
  app?: App
  /** Gets every failure that was stored: a new letter, or an occurrence of one. Never throws. */
  onStored?: (letter: DeadLetter) => void
}

/**
 * Turns failures into letters and stores them. When a promise of this class resolves, the letter is
 * in the store; only then may the source be acknowledged.
 */
export class Capturer {
  readonly #options: CapturerOptions
  /** The data subjects of letters that are not stored yet. */
  readonly #subjects = new WeakMap<DeadLetter, string>()

  constructor(options: CapturerOptions) {
    this.#options = options
  }

  get enabled(): boolean {
    return this.#options.enabled ?? true
  }

  async capture(captured: Captured): Promise<DeadLetter> {
    this.#checkEnabled(captured.queue)
    const { client } = captured.context
    const letter = this.#letterOf(captured)
    return inSpan(
      () => captureSpan(letter),
      async (span) => {
        if (span) joinTrace(letter, span)
        await this.#nameSubjects([letter])
        const [result] = await this.#storeFor(client).add([letter], this.#options.capacity)
        return this.#report(letter, result!, client !== undefined)
      },
    )
  }

  #checkEnabled(queue: string): void {
    if (!this.enabled)
      throw new RedriveError(
        'CAPTURE_DISABLED',
        `a failure of ${queue} was not stored because capture is disabled: set option capture to true, or dlq_enabled in the configuration`,
      )
  }

  /** The store, or the part of it that writes in the caller's transaction. */
  #storeFor(client: unknown): Pick<Store, 'add'> {
    const { store } = this.#options
    if (client === undefined) return store
    if (store.within) return store.within(client)
    throw new RedriveError(
      'INVALID_INPUT',
      `a ${store.powers.kind} store cannot join a transaction: remove client, or use a Postgres store`,
    )
  }

  /**
   * Captures many failures in few writes. Resolves with the ids in the given order, not with the
   * letters: a million of them would fill the memory. The next chunk is built while one is written.
   * If a letter cannot be stored, it stops, waits for the chunks in flight, and rejects with the
   * number of stored letters.
   */
  async captureAll<T>(failures: readonly T[], read: (failure: T) => Captured): Promise<string[]> {
    // Iterables without a length, such as a Set, would silently store nothing.
    if (!Array.isArray(failures))
      throw new RedriveError(
        'INVALID_INPUT',
        `enqueueAll expects an array of failures, got ${describeValue(failures)}`,
      )
    const stored: string[] = []
    const inFlight: Promise<string[]>[] = []
    const settle = async (chunk: Promise<string[]>): Promise<unknown> =>
      stored.push(...(await chunk))
    try {
      for (let start = 0; start < failures.length; start += chunkSize) {
        const letters = failures
          .slice(start, start + chunkSize)
          .map((one) => rejectClient(read(one)))
          .map((captured) => {
            this.#checkEnabled(captured.queue)
            return this.#letterOf(captured)
          })
        const chunk = this.#captureChunk(letters, stored)
        // The chunk is awaited later; until then its rejection must not count as unhandled.
        chunk.catch(() => {})
        inFlight.push(chunk)
        if (inFlight.length > chunksAhead) await settle(inFlight.shift()!)
        if (start + chunkSize < failures.length) await nextTurn()
      }
      while (inFlight.length > 0) await settle(inFlight.shift()!)
    } catch (error) {
      for (const late of await Promise.allSettled(inFlight))
        if (late.status === 'fulfilled') stored.push(...late.value)
      if (!(error instanceof RedriveError)) throw error
      const counted = `${stored.length} of ${failures.length} are stored`
      throw new RedriveError(error.code, `${error.message} (${counted})`, { cause: error })
    }
    return stored
  }

  /**
   * If a letter of the chunk fails, the ids of the stored ones are added to `stored` before the
   * error is thrown.
   */
  async #captureChunk(letters: DeadLetter[], stored: string[]): Promise<string[]> {
    const outcomes = await this.#addAll(letters)
    const ids = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []))
    const failed = outcomes.find(({ status }) => status === 'rejected')
    if (!failed) return ids
    stored.push(...ids)
    throw (failed as PromiseRejectedResult).reason
  }

  /**
   * Captures some failures in one write. Resolves with the outcome of each, in the given order: one
   * that cannot be stored does not stop the others.
   */
  async captureEach<T>(
    failures: readonly T[],
    read: (failure: T) => Captured,
  ): Promise<PromiseSettledResult<DeadLetter>[]> {
    const outcomes: PromiseSettledResult<DeadLetter>[] = []
    const letters: DeadLetter[] = []
    const positions: number[] = []
    for (const [position, failure] of failures.entries()) {
      try {
        const captured = rejectClient(read(failure))
        this.#checkEnabled(captured.queue)
        letters.push(this.#letterOf(captured))
        positions.push(position)
      } catch (reason) {
        outcomes[position] = { status: 'rejected', reason }
      }
    }
    if (letters.length === 0) return outcomes
    for (const [index, outcome] of (await this.#addAll(letters)).entries())
      outcomes[positions[index]!] = outcome
    return outcomes
  }

  #addAll(letters: readonly DeadLetter[]): Promise<PromiseSettledResult<DeadLetter>[]> {
    return inChunkSpan(letters, () => this.#addEach(letters))
  }

  async #addEach(letters: readonly DeadLetter[]): Promise<PromiseSettledResult<DeadLetter>[]> {
    const outcomes: PromiseSettledResult<DeadLetter>[] = []
    let results: AddResult[]
    await this.#nameSubjects(letters)
    try {
      results = await this.#options.store.add(letters, this.#options.capacity)
    } catch (reason) {
      return letters.map(() => ({ status: 'rejected', reason }))
    }
    for (const [index, letter] of letters.entries()) {
      const result = results[index]!
      try {
        const value =
          result.kind === 'added'
            ? this.#reportAdded(letter, result)
            : await this.#report(letter, result)
        outcomes.push({ status: 'fulfilled', value })
      } catch (reason) {
        outcomes.push({ status: 'rejected', reason })
      }
    }
    return outcomes
  }

  #letterOf(captured: Captured): DeadLetter {
    const { queue, source, payload, thrown, context } = captured
    const { clock, backoffs, rulesFor, maxPayloadBytes, app } = this.#options
    checkSize(payload, queue, maxPayloadBytes)
    const rules = rulesFor(queue)
    const nowMs = clock.now()
    const at = toTimestamp(nowMs)
    const { judged, template } = this.#understand(thrown, queue, at)
    const priority = context.priority ?? template?.priority ?? rules.priority
    const chosenRetries = context.maxRetries ?? template?.maxRetries
    const maxRetries = chosenRetries ?? maxRetriesFor(judged.category, rules)
    const decided = decideCapture({
      judged,
      priority,
      maxRetries,
      retryForMs: rules.retryForMs,
      random: () => clock.random(),
      customs: backoffs,
      chosen: context.policy,
      preferred: template?.backoff ?? rules.backoff,
    })
    const { state, policy } = decided
    const { failure, category, severity, recoverability, fingerprint } = judged
    const actor = context.by ?? 'capture'
    // One literal and assignments: spreads of optional parts are much slower.
    const letter: DeadLetter = {
      id: context.id?.toLowerCase() ?? clock.id(),
      version: 1,
      epoch: 0,
      occurrences: 1,
      queue,
      source,
      payload,
      metadata: context.metadata ? metadataOf(context.metadata) : {},
      tags: context.tags ? [...context.tags] : [],
      failure,
      firstFailure: failure,
      category,
      severity,
      recoverability,
      fingerprint,
      priority,
      policy,
      attempts: context.attempts ?? 1,
      retries: 0,
      maxRetries,
      replays: captured.replays ?? 0,
      backoffMs: 0,
      state,
      failedAt: context.failedAt ? toTimestamp(parseTime(context.failedAt)) : at,
      deadLetteredAt: at,
      updatedAt: at,
      history: [
        { at, actor, action: 'capture', from: null, to: state, failure: inHistory(judged) },
      ],
      historyOmitted: 0,
    }
    addOptional(letter, context)
    if (app) letter.app = { ...app }
    if (chosenRetries !== undefined) letter.maxRetriesChosen = true
    if (decided.state === 'pending') {
      letter.retryAt = toTimestamp(nowMs + decided.delayMs)
      letter.backoffMs = decided.delayMs
      if (decided.problem) this.#reportError(queue, decided.problem)
    } else {
      letter.reason = captured.reason ?? decided.reason
      letter.review = { neededSince: at }
      letter.settledAt = at
    }
    const stored = redactCaptured(letter, this.#options.redactionFor?.(queue))
    const subject = findSubject(captured, rules.subject)
    if (subject !== undefined) this.#subjects.set(stored, subject)
    return stored
  }

  async #nameSubjects(letters: readonly DeadLetter[]): Promise<void> {
    const { subjects, hub } = this.#options
    if (subjects) await nameSubjects(letters, this.#subjects, subjects, hub)
  }

  #understand(thrown: unknown, queue: string, at: Timestamp): Understood {
    const { classifierRules, fingerprints, redactionFor } = this.#options
    return understand(
      thrown,
      queue,
      at,
      classifierRules,
      (problem) => this.#reportError(queue, problem),
      undefined,
      fingerprints,
      redactionFor?.(queue),
    )
  }

  #reportError(queue: string, problem: string): void {
    this.#options.hub.emit({ type: 'error', during: `capture of ${queue}`, error: problem })
  }

  /** Emits the events of a letter that was added. */
  #reportAdded(letter: DeadLetter, { evicted }: AddedResult): DeadLetter {
    const { hub, onStored } = this.#options
    onStored?.(letter)
    if (evicted) hub.emit({ type: 'evicted', count: evicted })
    hub.emit({ type: 'captured', letter })
    if (letter.state === 'parked') hub.emit({ type: 'parked', letter })
    return letter
  }

  /** Emits the events for the result of a write, and returns the letter that is stored now. */
  async #report(
    letter: DeadLetter,
    result: AddResult,
    uncommitted = false,
    tries = 1,
  ): Promise<DeadLetter> {
    const { hub, store, capacity } = this.#options
    if (result.kind === 'added') return this.#reportAdded(letter, result)
    if (result.kind === 'full') {
      const maxItems = capacity?.maxItems ?? 0
      hub.emit({ type: 'full', queue: letter.queue, maxItems })
      throw new RedriveError(
        'QUEUE_FULL',
        `the queue is full: ${maxItems} letters are stored (maxItems); archive or remove some, or raise the limit`,
      )
    }
    const [stored] = await store.get([result.of])
    // A letter from the same uncommitted transaction is not visible outside of it.
    if (!stored && uncommitted) return { ...letter, id: result.of, occurrences: result.occurrences }
    const first = result.by === 'id' ? await store.original(result.of) : stored?.payload
    if (!stored || !first) {
      if (uncommitted || tries === maxTries)
        throw new RedriveError(
          'VERSION_CONFLICT',
          `letter ${result.of} was removed during this capture: capture the failure again`,
        )
      // The duplicate that this capture matched was removed concurrently: add the letter again.
      const [again] = await store.add([letter], capacity)
      return this.#report(letter, again!, false, tries + 1)
    }
    if (result.by === 'id' && !sameBytes(first, letter.payload))
      throw new RedriveError(
        'ID_CONFLICT',
        `letter ${letter.id} is already stored with another payload: use another id`,
      )
    if (result.by === 'dedupeKey') this.#options.onStored?.(letter)
    hub.emit({ type: 'duplicate', letter: stored, occurrences: result.occurrences })
    return stored
  }
}

type AddedResult = Extract<AddResult, { kind: 'added' }>

/** Retries when the matched duplicate is removed concurrently. */
const maxTries = 5
/** Small enough that building a chunk does not block the event loop. */
const chunkSize = 256
const chunksAhead = 2

function sameBytes(a: Payload, b: Payload): boolean {
  return a.size === b.size && Buffer.compare(a.bytes, b.bytes) === 0
}

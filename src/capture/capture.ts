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
import { findSubject, type Subjects } from './subjects.ts'
import { checkSize, jsonOf, metadataOf, type CaptureContext } from './context.ts'
import { captureSpan, chunkSpan, joinTrace } from './trace.ts'

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

  constructor(options: CapturerOptions) {
    this.#options = options
  }

  get enabled(): boolean {
    return this.#options.enabled ?? true
  }

  async capture(captured: Captured): Promise<DeadLetter> {
    this.#checkEnabled(captured.queue)
    const { client } = captured.context
    const [letter] = await this.#withSubjects([this.#letterOf(captured)], [captured])
    return inSpan(
      () => captureSpan(letter!),
      async (span) => {
        if (span) joinTrace(letter!, span)
        const [result] = await this.#storeFor(client).add([letter!], this.#options.capacity)
        return this.#report(letter!, result!, client !== undefined)
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
        const captured = failures
          .slice(start, start + chunkSize)
          .map((one) => rejectClient(read(one)))
        const built = captured.map((one) => {
          this.#checkEnabled(one.queue)
          return this.#letterOf(one)
        })
        const letters = await this.#withSubjects(built, captured)
        const chunk = inSpan(
          () => chunkSpan(letters),
          (span) => {
            // A batch has one span. Letters with a trace of their own stay in it.
            for (const letter of span ? letters : [])
              if (letter.traceparent === undefined) joinTrace(letter, span!)
            return this.#captureChunk(letters, stored)
          },
        )
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
    for (const [index, outcome] of (await this.#addAll(letters)).entries())
      outcomes[positions[index]!] = outcome
    return outcomes
  }

  async #addAll(letters: readonly DeadLetter[]): Promise<PromiseSettledResult<DeadLetter>[]> {
    const outcomes: PromiseSettledResult<DeadLetter>[] = []
    let results: AddResult[]
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
    const redaction = this.#options.redactionFor?.(queue)
    return redaction ? redactCaptured(letter, redaction) : letter
  }

  /** The letters with the keyed hashes of their data subjects. */
  async #withSubjects(
    letters: readonly DeadLetter[],
    captured: readonly Captured[],
  ): Promise<DeadLetter[]> {
    const { subjects, rulesFor } = this.#options
    const named: DeadLetter[] = []
    for (const [index, letter] of letters.entries()) {
      const subject = findSubject(captured[index]!, rulesFor(letter.queue).subject)
      const hash = subject === undefined ? undefined : await this.#hash(subjects, subject, letter)
      named.push(hash ? { ...letter, payload: { ...letter.payload, subject: hash } } : letter)
    }
    return named
  }

  /** A letter is never lost because its subject cannot be recorded. */
  async #hash(
    subjects: Subjects | undefined,
    subject: string,
    { id, queue }: DeadLetter,
  ): Promise<string | undefined> {
    try {
      return await subjects?.hashOf(subject)
    } catch (error) {
      const during = `capture of ${queue}: letter ${id} is stored without its data subject`
      this.#options.hub.emit({ type: 'error', during, error })
      return undefined
    }
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

/**
 * Many failures take several overlapping writes, which one transaction of the caller cannot
 * contain.
 */
function rejectClient(captured: Captured): Captured {
  if (captured.context.client === undefined) return captured
  throw new RedriveError(
    'INVALID_INPUT',
    'client is not allowed in enqueueAll: call enqueue for each failure',
  )
}

type AddedResult = Extract<AddResult, { kind: 'added' }>

/** Retries when the matched duplicate is removed concurrently. */
const maxTries = 5
/** Small enough that building a chunk does not block the event loop. */
const chunkSize = 256
const chunksAhead = 2

/**
 * Adds the fields of the context that a letter has only if they are given. Only known keys: a
 * letter with others could not be read back.
 */
function addOptional(letter: DeadLetter, context: CaptureContext): void {
  const { dedupeKey, lane, tenant, traceparent, headers, dependsOn, task, github } = context
  if (dedupeKey !== undefined) letter.dedupeKey = dedupeKey
  if (lane !== undefined) letter.lane = lane
  if (tenant !== undefined) letter.tenant = tenant
  // JavaScript callers may give null.
  if (traceparent !== undefined && traceparent !== null) letter.traceparent = traceparent
  if (headers) letter.headers = jsonOf(headers) as Record<string, string>
  // Ids are stored in lower case, like the id of the letter.
  if (dependsOn) letter.dependsOn = dependsOn.map((id) => id.toLowerCase())
  if (task) letter.task = { id: task.id, description: task.description, source: task.source }
  if (github) letter.github = githubOf(github)
  if (context.expiresAt) letter.expiresAt = toTimestamp(parseTime(context.expiresAt))
}

/** The letter as it is stored. Without its whole payload it cannot run, so a person must act. */
function redactCaptured(letter: DeadLetter, redaction: Redaction): DeadLetter {
  const stored = redaction.captured(letter)
  if (!stored.payload.redacted || stored.state !== 'pending') return stored
  const { retryAt: _, history, ...rest } = stored
  const { at } = history[0]!
  return {
    ...rest,
    state: 'parked',
    reason: 'redacted',
    backoffMs: 0,
    review: { neededSince: at },
    settledAt: at,
    history: history.map((entry) => ({ ...entry, to: 'parked' })),
  }
}

type Github = NonNullable<DeadLetter['github']>

function githubOf({ owner, repo, entityNumber, entityType }: Github): Github {
  return {
    owner,
    repo,
    ...(entityNumber === undefined ? {} : { entityNumber }),
    ...(entityType === undefined ? {} : { entityType }),
  }
}

function sameBytes(a: Payload, b: Payload): boolean {
  return a.size === b.size && Buffer.compare(a.bytes, b.bytes) === 0
}

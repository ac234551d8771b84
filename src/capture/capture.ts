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
import { toMs, toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import { decideCapture } from '../policy/decide.ts'
import { understand } from '../policy/judge.ts'
import { inHistory } from '../letter/history.ts'
import type { Rule } from '../policy/classify.ts'
import { maxRetriesFor, type RetryLimits } from '../policy/retry-limits.ts'
import type { AddResult, Capacity, Store } from '../store.ts'
import { checkSize, jsonOf, metadataOf, type CaptureContext } from './context.ts'

export interface Captured {
  queue: string
  source: Source
  payload: Payload
  thrown: unknown
  context: CaptureContext
  /** Why it is parked, where whoever captures knows better than its failure tells. */
  reason?: Reason
  /** How often it was published to its source before, over all its lives. */
  replays?: number
}

/** What the door needs to know about the queue it captures for. */
interface DoorRules extends RetryLimits {
  priority: Priority
  backoff?: RetryPolicy
}

export interface DoorOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  rulesFor: (queue: string) => DoorRules
  classifierRules: readonly Rule[]
  backoffs: Record<string, (retry: number, failure: DeadLetter['failure']) => number>
  capacity: Capacity | undefined
  maxPayloadBytes: number
  /** False: nothing is kept, and every capture rejects with CAPTURE_DISABLED. Default: true. */
  enabled?: boolean
  /** The program that captures. Default: letters do not name it. */
  app?: App
}

/**
 * IN: turns a failure into a letter and has it kept. When a promise of this room resolves, the letter is in the
 * store; only then may the source be acknowledged.
 */
export class Door {
  readonly #options: DoorOptions

  constructor(options: DoorOptions) {
    this.#options = options
  }

  get enabled(): boolean {
    return this.#options.enabled ?? true
  }

  async capture(captured: Captured): Promise<DeadLetter> {
    this.#mustBeEnabled(captured.queue)
    const { client } = captured.context
    const letter = this.#letterOf(captured)
    const [result] = await this.#storeFor(client).add([letter], this.#options.capacity)
    return this.#told(letter, result!, client !== undefined)
  }

  #mustBeEnabled(queue: string): void {
    if (!this.enabled)
      throw new RedriveError(
        'CAPTURE_DISABLED',
        `a failure of ${queue} was not kept: capture is turned off (option capture, or dlq_enabled: false in the configuration)`,
      )
  }

  /** The store, or its end of the caller's transaction. */
  #storeFor(client: unknown): Pick<Store, 'add'> {
    const { store } = this.#options
    if (client === undefined) return store
    if (store.within) return store.within(client)
    throw new RedriveError(
      'INVALID_INPUT',
      `a ${store.powers.kind} store cannot join a transaction of yours: leave client out, or use a Postgres store`,
    )
  }

  /**
   * Many at once, in few writes; answers with the ids in the order given, since a million letters would fill the memory. While one chunk is written the next is made. When one
   * cannot be kept it stops, waits for what is on its way, and says how many are kept.
   */
  async captureAll<T>(failures: readonly T[], read: (failure: T) => Captured): Promise<string[]> {
    // A set has no length, and nothing of it would be kept.
    if (!Array.isArray(failures))
      throw new RedriveError('INVALID_INPUT', 'many failures at once must be a list of them')
    const kept: string[] = []
    const onTheirWay: Promise<string[]>[] = []
    const land = async (chunk: Promise<string[]>): Promise<unknown> => kept.push(...(await chunk))
    try {
      for (let start = 0; start < failures.length; start += chunkSize) {
        const letters = failures
          .slice(start, start + chunkSize)
          .map((one) => alone(read(one)))
          .map((captured) => {
            this.#mustBeEnabled(captured.queue)
            return this.#letterOf(captured)
          })
        const chunk = this.#captureChunk(letters, kept)
        // It is awaited in its turn; until then a failure of it must not count as unhandled.
        chunk.catch(() => {})
        onTheirWay.push(chunk)
        if (onTheirWay.length > chunksAhead) await land(onTheirWay.shift()!)
        if (start + chunkSize < failures.length) await nextTurn()
      }
      while (onTheirWay.length > 0) await land(onTheirWay.shift()!)
    } catch (error) {
      for (const late of await Promise.allSettled(onTheirWay))
        if (late.status === 'fulfilled') kept.push(...late.value)
      if (!(error instanceof RedriveError)) throw error
      const counted = `${kept.length} of ${failures.length} are kept`
      throw new RedriveError(error.code, `${error.message} (${counted})`, { cause: error })
    }
    return kept
  }

  /** What of a chunk was kept before one could not be counts as kept. */
  async #captureChunk(letters: DeadLetter[], kept: string[]): Promise<string[]> {
    const results = await this.#options.store.add(letters, this.#options.capacity)
    const told: string[] = []
    let trouble: unknown
    for (const [index, letter] of letters.entries()) {
      try {
        told.push((await this.#told(letter, results[index]!)).id)
      } catch (error) {
        trouble ??= error
      }
    }
    if (trouble === undefined) return told
    kept.push(...told)
    throw trouble
  }

  #letterOf({ queue, source, payload, thrown, context, ...captured }: Captured): DeadLetter {
    const { clock, classifierRules, backoffs, rulesFor, maxPayloadBytes, app } = this.#options
    checkSize(payload, queue, maxPayloadBytes)
    const rules = rulesFor(queue)
    const nowMs = clock.now()
    const at = toTimestamp(nowMs)
    const { judged, template } = understand(thrown, queue, at, classifierRules, (problem) =>
      this.#reportError(queue, problem),
    )
    const priority = context.priority ?? template?.priority ?? rules.priority
    const chosenRetries = context.maxRetries ?? template?.maxRetries
    const maxRetries = chosenRetries ?? maxRetriesFor(judged.category, rules)
    const preferred = template?.backoff ?? rules.backoff
    const decided = decideCapture({
      judged,
      priority,
      maxRetries,
      random: () => clock.random(),
      customs: backoffs,
      ...(rules.retryForMs === undefined ? {} : { retryForMs: rules.retryForMs }),
      ...(context.policy ? { chosen: context.policy } : {}),
      ...(preferred ? { preferred } : {}),
    })
    if ('problem' in decided && decided.problem) this.#reportError(queue, decided.problem)
    const actor = context.by ?? 'capture'
    const state = decided.state
    return {
      id: context.id?.toLowerCase() ?? clock.id(),
      version: 1,
      epoch: 0,
      occurrences: 1,
      ...optional(context),
      queue,
      source,
      ...(app ? { app: { ...app } } : {}),
      payload,
      metadata: context.metadata ? metadataOf(context.metadata) : {},
      tags: context.tags ? [...context.tags] : [],
      ...judged,
      firstFailure: judged.failure,
      priority,
      policy: decided.policy,
      attempts: context.attempts ?? 1,
      retries: 0,
      maxRetries,
      ...(chosenRetries === undefined ? {} : { maxRetriesChosen: true }),
      replays: captured.replays ?? 0,
      ...(decided.state === 'pending'
        ? { retryAt: toTimestamp(nowMs + decided.delayMs), backoffMs: decided.delayMs }
        : {
            backoffMs: 0,
            reason: captured.reason ?? decided.reason,
            review: { neededSince: at },
            settledAt: at,
          }),
      state,
      failedAt: context.failedAt ? toTimestamp(toMs(context.failedAt)) : at,
      deadLetteredAt: at,
      updatedAt: at,
      history: [
        {
          at,
          actor,
          action: 'capture',
          from: null,
          to: state,
          failure: inHistory(judged),
        },
      ],
      historyOmitted: 0,
    }
  }

  #reportError(queue: string, problem: string): void {
    this.#options.hub.emit({ type: 'error', during: `capture of ${queue}`, error: problem })
  }

  async #told(
    letter: DeadLetter,
    result: AddResult,
    uncommitted = false,
    tries = 1,
  ): Promise<DeadLetter> {
    const { hub, store, capacity } = this.#options
    if (result.kind === 'added') {
      if (result.evicted) hub.emit({ type: 'evicted', count: result.evicted })
      hub.emit({ type: 'captured', letter })
      if (letter.state === 'parked') hub.emit({ type: 'parked', letter })
      return letter
    }
    if (result.kind === 'full') {
      const maxItems = capacity?.maxItems ?? 0
      hub.emit({ type: 'full', queue: letter.queue, maxItems })
      throw new RedriveError(
        'QUEUE_FULL',
        `${maxItems} letters are kept already (maxItems): archive or remove some, or raise the limit`,
      )
    }
    const [kept] = await store.get([result.of])
    // What came earlier in the same transaction cannot be seen from outside of it.
    if (!kept && uncommitted) return { ...letter, id: result.of, occurrences: result.occurrences }
    const first = result.by === 'id' ? await store.original(result.of) : kept?.payload
    if (!kept || !first) {
      if (uncommitted || tries === maxTries)
        throw new RedriveError(
          'VERSION_CONFLICT',
          `letter ${result.of} was removed while it was captured again: capture it once more`,
        )
      // The letter that it counted for was removed in between, and it with that letter.
      const [again] = await store.add([letter], capacity)
      return this.#told(letter, again!, false, tries + 1)
    }
    if (result.by === 'id' && !sameBytes(first, letter.payload))
      throw new RedriveError(
        'ID_CONFLICT',
        `letter ${letter.id} is kept already with another payload: the first one stays`,
      )
    hub.emit({ type: 'duplicate', letter: kept, occurrences: result.occurrences })
    return kept
  }
}

/** Many at once take several writes, and no transaction of the caller's lets them overlap. */
function alone(captured: Captured): Captured {
  if (captured.context.client === undefined) return captured
  throw new RedriveError('INVALID_INPUT', 'client works with enqueue, one failure at a time')
}

/** How often a letter is captured whose like is removed in the same moment. */
const maxTries = 5
/** Small enough that making one does not hold up the event loop. */
const chunkSize = 64
const chunksAhead = 2

const optionalKeys = ['dedupeKey', 'lane', 'tenant', 'traceparent', 'headers'] as const

/** A letter has no key that its schema does not know: what was said in a wider object could not be read again. */
function optional(context: CaptureContext): Partial<DeadLetter> {
  const given: Record<string, unknown> = {}
  for (const key of optionalKeys) {
    const value = context[key] ?? undefined
    if (value !== undefined) given[key] = typeof value === 'object' ? jsonOf(value) : value
  }
  const { dependsOn, task, github } = context
  // Ids are kept in small letters, as that of the letter itself.
  if (dependsOn) given['dependsOn'] = dependsOn.map((id) => id.toLowerCase())
  if (task) given['task'] = { id: task.id, description: task.description, source: task.source }
  if (github) given['github'] = githubOf(github)
  if (context.expiresAt) given['expiresAt'] = toTimestamp(toMs(context.expiresAt))
  return given
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

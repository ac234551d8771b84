import { checkKeys, checkOneOf, describeValue, keysOf } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import { maxLimit, type LetterFilter, type Page } from '../letter/query.ts'
import { toTimestamp } from '../letter/time.ts'
import {
  bulkActionNames,
  outcomes,
  type BulkAction,
  type BulkActionName,
  type BulkResult,
  type BulkState,
  type Outcome,
} from '../letter/bulk-action.ts'
import type { PlanOptions } from './plan-options.ts'
import { planAction, type PlannerOptions } from './planner.ts'
import { BulkRecords, chunkLetters, toShown, type StoredAction } from './records.ts'

export interface BulkOptions extends PlannerOptions {
  /** Called when an action has become active. */
  onActive: () => void
}

export interface ResultsQuery {
  /** Only letters with these outcomes. */
  outcome?: Outcome | Outcome[]
  /** Page size, from 1 to 1,000. Default: 100. */
  limit?: number
  cursor?: string
}

const resultsKeys = keysOf<ResultsQuery>({ outcome: true, limit: true, cursor: true })

/** Plans bulk actions, controls them and reports their results. The runner runs them. */
export class Bulk {
  readonly #options: BulkOptions
  readonly #records: BulkRecords

  constructor(options: BulkOptions) {
    this.#options = options
    this.#records = new BulkRecords(options.store)
  }

  async plan(
    action: BulkActionName,
    filter: LetterFilter,
    options: PlanOptions,
  ): Promise<BulkAction> {
    checkOneOf('bulk action', [action], bulkActionNames)
    return planAction(this.#options, action, filter, options)
  }

  async get(id: string): Promise<BulkAction> {
    return toShown((await this.#records.load(id)).action)
  }

  async list(limit: number): Promise<BulkAction[]> {
    checkLimit(limit, 0)
    return this.#records.list(limit)
  }

  /** Approves a plan that needs a second person. */
  async approve(id: string, by: string): Promise<BulkAction> {
    if (typeof by !== 'string' || by === '')
      throw new RedriveError(
        'INVALID_INPUT',
        `\`by\` must be a non-empty string, got ${describeValue(by)}`,
      )
    return this.#records.update(id, (action) => {
      this.#checkPlanned(action)
      if (!action.approval) return action
      if (by === action.by)
        throw new RedriveError(
          'APPROVAL_REQUIRED',
          `bulk action ${id} was planned by ${by}: another person has to approve it`,
        )
      const at = this.#now()
      return { ...action, approval: { ...action.approval, by, at } }
    })
  }

  /** Starts a planned action. Workers of all processes on the store may run it. */
  async run(id: string): Promise<BulkAction> {
    return this.#activate(id, (action) => {
      this.#checkPlanned(action)
      const { approval } = action
      if (approval && approval.by === undefined)
        throw new RedriveError(
          'APPROVAL_REQUIRED',
          `bulk action ${id} has ${action.count} letters, more than ${approval.above}: another person than ${action.by} has to approve it`,
        )
      return { ...action, state: 'running', startedAt: this.#now() }
    })
  }

  /** Acts on no further letters. Letters that were retried still run. */
  pause(id: string): Promise<BulkAction> {
    return this.#records.update(id, (action) =>
      action.state === 'paused'
        ? action
        : { ...check(action, 'pause', ['running']), state: 'paused' },
    )
  }

  /** Continues an action that was paused or stopped. Its canary begins again. */
  resume(id: string): Promise<BulkAction> {
    return this.#activate(id, (action) => {
      if (action.state === 'running') return action
      const { ramp: _, stopReason: __, ...rest } = check(action, 'resume', ['paused', 'stopped'])
      return { ...rest, state: 'running' }
    })
  }

  /** Ends an action for good. What it has done stays done. */
  cancel(id: string): Promise<BulkAction> {
    return this.#records.update(id, (action) =>
      action.state === 'cancelled'
        ? action
        : {
            ...check(action, 'cancel', ['planned', 'running', 'paused', 'stopped']),
            state: 'cancelled',
            endedAt: this.#now(),
          },
    )
  }

  /** What the action did to each letter, in the order in which it acts on them. */
  async results(id: string, query: ResultsQuery): Promise<Page<BulkResult>> {
    checkKeys('results query', query, resultsKeys)
    const { limit = 100, cursor } = query
    if (query.outcome !== undefined) checkOneOf('outcome', query.outcome, outcomes)
    checkLimit(limit, 1)
    if (cursor !== undefined && !/^\d{1,9}$/.test(cursor))
      throw new RedriveError(
        'INVALID_INPUT',
        `cursor must come from an earlier page of results, got ${describeValue(cursor)}`,
      )
    await this.#records.load(id)
    return this.#readResults(id, Number(cursor ?? 0), limit, query.outcome)
  }

  async #readResults(
    id: string,
    from: number,
    limit: number,
    outcome: ResultsQuery['outcome'],
  ): Promise<Page<BulkResult>> {
    const items: BulkResult[] = []
    for await (const { index, letters } of this.#records.chunks(
      id,
      Math.floor(from / chunkLetters),
    ))
      for (const [offset, letter] of letters.entries()) {
        const position = index * chunkLetters + offset
        if (position < from) continue
        const { id: letterId, outcome: known = 'pending', runs, error } = letter
        if (outcome !== undefined && ![outcome].flat().includes(known)) continue
        if (items.length === limit) return { items, cursor: String(position) }
        items.push({
          id: letterId,
          outcome: known,
          ...(runs === undefined ? {} : { runs }),
          ...(error === undefined ? {} : { error }),
        })
      }
    return { items }
  }

  /**
   * Marks the action as active first: an active action that is not running is left alone, but a
   * running action that is not active would never be run.
   */
  async #activate(id: string, change: (action: StoredAction) => StoredAction): Promise<BulkAction> {
    change((await this.#records.load(id)).action)
    await this.#records.activate(id)
    const action = await this.#records.update(id, change)
    this.#options.onActive()
    return action
  }

  #checkPlanned(action: StoredAction): void {
    check(action, 'run', ['planned'])
    if (this.#now() >= action.expiresAt)
      throw new RedriveError(
        'PLAN_EXPIRED',
        `the plan of bulk action ${action.id} expired at ${action.expiresAt}: plan it again`,
      )
  }

  #now(): string {
    return toTimestamp(this.#options.clock.now())
  }
}

function check(action: StoredAction, verb: string, states: readonly BulkState[]): StoredAction {
  if (states.includes(action.state)) return action
  throw new RedriveError(
    'ILLEGAL_MOVE',
    `bulk action ${action.id} is ${action.state}: ${verb} is possible when it is ${states.join(' or ')}`,
  )
}

function checkLimit(limit: number, least: number): void {
  if (!Number.isInteger(limit) || limit < least || limit > maxLimit)
    throw new RedriveError(
      'INVALID_INPUT',
      `limit must be an integer from ${least} to ${maxLimit}, got ${describeValue(limit)}`,
    )
}

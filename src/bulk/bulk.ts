import { checkKeys, checkOneOf, describeValue, keysOf } from '../check/keys.ts'
import { checkBy } from '../check/text.ts'
import { RedriveError } from '../errors.ts'
import { maxLimit, type LetterFilter, type Page } from '../letter/query.ts'
import { toTimestamp } from '../letter/time.ts'
import {
  filterActionNames,
  outcomes,
  type BulkAction,
  type BulkActionName,
  type BulkResult,
  type BulkState,
  type FilterActionName,
  type Outcome,
} from '../letter/bulk-action.ts'
import type { PlanOptions, UndoOptions } from './plan-options.ts'
import { planAction, type PlannerOptions } from './planner.ts'
import { planUndo } from './undo.ts'
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
    action: FilterActionName,
    filter: LetterFilter,
    options: PlanOptions,
  ): Promise<BulkAction> {
    if ((action as BulkActionName) === 'undo')
      throw new RedriveError(
        'INVALID_INPUT',
        'undo has no filter: call planUndo with the id of the edit',
      )
    checkOneOf('bulk action', [action], filterActionNames)
    return planAction(this.#options, action, filter, options)
  }

  /** Plans to restore the payloads that an edit has changed. */
  async planUndo(editId: string, options: UndoOptions): Promise<BulkAction> {
    return planUndo(this.#options, editId, options)
  }

  async get(id: string): Promise<BulkAction> {
    return toShown((await this.#records.load(id)).action)
  }

  async list(limit: number, matches: (action: BulkAction) => boolean): Promise<BulkAction[]> {
    checkLimit(limit, 0)
    return this.#records.list(limit, matches)
  }

  /** The actions that workers run, or would run if they were not paused or stopped. */
  async active(): Promise<BulkAction[]> {
    return this.#records.byIds(await this.#records.activeIds())
  }

  /** The actions with these ids. Unknown ids are left out. */
  byIds(ids: readonly string[]): Promise<BulkAction[]> {
    return this.#records.byIds(ids)
  }

  /** Approves a plan that needs a second person. The first approval stays. */
  async approve(id: string, by: string): Promise<BulkAction> {
    const approver = checkBy(by)
    return this.#records.update(id, (action) => {
      this.#checkPlanned(action, 'approve')
      if (!action.approval) return action
      if (approver === action.by)
        throw new RedriveError(
          'APPROVAL_REQUIRED',
          `bulk action ${id} was planned by ${approver}: another person has to approve it`,
        )
      if (action.approval.by !== undefined) return action
      return { ...action, approval: { ...action.approval, by: approver, at: this.#now() } }
    })
  }

  /** Starts a planned action. Workers of all processes on the store may run it. */
  async run(id: string): Promise<BulkAction> {
    return this.#activate(id, (action) => {
      this.#checkPlanned(action, 'run')
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
        : { ...checkState(action, 'pause', ['running']), state: 'paused' },
    )
  }

  /** Continues an action that was paused or stopped. Its canary begins again. */
  resume(id: string): Promise<BulkAction> {
    return this.#activate(id, (action) => {
      if (action.state === 'running') return action
      const {
        ramp: _,
        stopReason: __,
        ...rest
      } = checkState(action, 'resume', ['paused', 'stopped'])
      return { ...rest, state: 'running' }
    })
  }

  /** Ends an action for good. What it has done stays done. */
  cancel(id: string): Promise<BulkAction> {
    return this.#records.update(id, (action) =>
      action.state === 'cancelled'
        ? action
        : {
            ...checkState(action, 'cancel', ['planned', 'running', 'paused', 'stopped']),
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

  #checkPlanned(action: StoredAction, verb: 'approve' | 'run'): void {
    checkState(action, verb, ['planned'])
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

function checkState(
  action: StoredAction,
  verb: string,
  states: readonly BulkState[],
): StoredAction {
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

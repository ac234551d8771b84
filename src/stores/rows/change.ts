import type { Patch, PatchKey } from '../../letter/letter.ts'
import { countsOf } from '../../letter/counts.ts'
import type { Change } from '../../letter/moves.ts'
import {
  actionCode,
  archived,
  categoryCode,
  pending,
  policyCode,
  priorityCode,
  reasonCode,
  recoverabilityCode,
  severityCode,
  stateCode,
  wait,
} from './codes.ts'
import type { Column, SqlValue } from './columns.ts'
import { encodeObject, encodePolicy, factsOf } from './encode.ts'
import { encodeEntry } from './history-column.ts'
import { encodeOptionalTime, encodeTime } from './times.ts'

/** New values of columns. */
export type ColumnValues = { [K in Column]?: SqlValue }

/** A change as stores write it: columns of one row, and what follows from them. */
export interface RowChange {
  id: string
  guard: Change['guard']
  /**
   * The new values. `version`, `history`, `omitted` and, if `due` is 'resting', the place follow.
   */
  set: ColumnValues
  /**
   * `ready`: the letter is due at its `retry_at`, unless its lane or its dependencies hold it.
   * `none`: it is not due, and is listed by the `retry_at` of the change, if any. `resting`: the
   * same, by the `retry_at` that it has.
   * Undefined: unchanged.
   */
  due: 'ready' | 'none' | 'resting' | undefined
  /** The line to append to the history. */
  entry: string
  /** The codes of the lifetime totals to add to. */
  counts: number[]
  /** The bytes of an edited payload. */
  bytes: Uint8Array | undefined
}

type Encoders = {
  [K in PatchKey]: (set: ColumnValues, value: Exclude<Patch[K], undefined>) => void
}

type Encode = (set: ColumnValues, value: unknown) => void

const encoders: Encoders = {
  state: (set, value) => (set.state = stateCode(value)),
  priority: (set, value) => (set.priority = priorityCode(value)),
  category: (set, value) => (set.category = categoryCode(value)),
  severity: (set, value) => (set.severity = severityCode(value)),
  recoverability: (set, value) => (set.recoverability = recoverabilityCode(value)),
  policy: (set, value) => {
    set.policy = policyCode(value.kind)
    set.policy_json = encodePolicy(value)
  },
  reason: (set, value) => (set.reason = value === null ? null : reasonCode(value)),
  archivedFrom: (set, value) => (set.archived_from = value === null ? null : stateCode(value)),
  fingerprint: (set, value) => (set.fingerprint = value),
  retries: (set, value) => (set.retries = value),
  maxRetries: (set, value) => (set.max_retries = value),
  replays: (set, value) => (set.replays = value),
  backoffMs: (set, value) => (set.backoff_ms = value),
  retryAt: (set, value) => (set.retry_at = encodeOptionalTime(value)),
  settledAt: (set, value) => (set.settled_at = encodeOptionalTime(value)),
  expiresAt: (set, value) => (set.expires_at = encodeOptionalTime(value)),
  updatedAt: () => {},
  budgetSince: (set, value) => (set.budget_since = encodeOptionalTime(value)),
  deferredSince: (set, value) => (set.deferred_since = encodeOptionalTime(value)),
  lease: (set, value) => {
    set.worker = value?.worker ?? null
    set.leased_until = encodeOptionalTime(value?.expiresAt)
  },
  tags: (set, value) => (set.tags = value.length > 0 ? JSON.stringify(value) : null),
  headers: (set, value) => (set.headers = encodeObject(value)),
  metadata: (set, value) =>
    (set.metadata = Object.keys(value).length > 0 ? JSON.stringify(value) : null),
  failure: (set, value) => (set.failure = JSON.stringify(value)),
  review: (set, value) => (set.review = encodeObject(value)),
  payload: (set, value) => (set.edit = JSON.stringify(factsOf(value))),
}

export function encodeChange(change: Change): RowChange {
  const { id, guard, action, entry } = change
  const set = encodePatch(change.set)
  // An edit leaves the letter where it is.
  if (action === 'edit') delete set.state
  set.updated_at = encodeTime(entry.at)
  const due = placeOf(set.state as number | undefined)
  if (due === 'ready') set.due_at = set.retry_at ?? set.updated_at
  else if (due === 'none') {
    set.due_at = set.retry_at ?? null
    set.wait = set.due_at === null ? null : wait.resting
  }
  return {
    id,
    guard,
    set,
    due,
    entry: encodeEntry(entry),
    counts: countsOf(change).map(actionCode),
    bytes: change.set.payload?.bytes,
  }
}

export function encodePatch(patch: Patch): ColumnValues {
  const set: ColumnValues = {}
  for (const field of Object.keys(patch) as PatchKey[]) {
    const value = patch[field]
    if (value !== undefined) (encoders[field] as Encode)(set, value)
  }
  return set
}

function placeOf(state: number | undefined): RowChange['due'] {
  if (state === undefined) return undefined
  if (state === pending) return 'ready'
  return state === archived ? 'resting' : 'none'
}

/** Changes that set the same columns: one statement can write all of them. */
export interface ChangeGroup {
  columns: Column[]
  due: RowChange['due']
  changes: { index: number; change: RowChange }[]
}

/**
 * Groups changes by the columns that they set. Changes of one letter are written one after the
 * other: each round has at most one change of a letter.
 */
export function groupChanges(changes: readonly RowChange[]): ChangeGroup[][] {
  if (changes.length === 1) return [[groupOf(0, changes[0]!)]]
  const rounds: Map<string, ChangeGroup>[] = []
  const nextRound = new Map<string, number>()
  for (const [index, change] of changes.entries()) {
    const round = nextRound.get(change.id) ?? 0
    nextRound.set(change.id, round + 1)
    const groups = (rounds[round] ??= new Map<string, ChangeGroup>())
    const columns = Object.keys(change.set).join()
    const shape = `${columns} ${change.due} ${'epoch' in change.guard ? 'e' : 'v'}`
    const group = groups.get(shape)
    if (group) group.changes.push({ index, change })
    else groups.set(shape, groupOf(index, change))
  }
  return rounds.map((groups) => [...groups.values()])
}

function groupOf(index: number, change: RowChange): ChangeGroup {
  const columns = Object.keys(change.set) as Column[]
  return { columns, due: change.due, changes: [{ index, change }] }
}

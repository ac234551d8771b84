import type { Patch, PatchKey } from '../../letter/letter.ts'
import { countsOf, type Change } from '../../letter/moves.ts'
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
import { encodeObject, encodeOptionalTime, encodePolicy, encodeTime, factsOf } from './encode.ts'
import { encodeEntry } from './history-column.ts'

/** New values of columns. */
export type ColumnValues = { [K in Column]?: SqlValue }

/** A change as stores write it: columns of one row, and what follows from them. */
export interface RowChange {
  id: string
  guard: Change['guard']
  /** The new values. `version`, `history`, `omitted` and, if `due` is 'resting', the place follow. */
  set: ColumnValues
  /**
   * `ready`: the letter is due at its `retry_at`, unless its lane or its dependencies hold it.
   * `none`: it is not due. `resting`: it is not due, and is listed by its own `retry_at`, if any.
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

type Encoders = { [K in PatchKey]: (value: Exclude<Patch[K], undefined>) => ColumnValues }

const encoders: Encoders = {
  state: (value) => ({ state: stateCode(value) }),
  priority: (value) => ({ priority: priorityCode(value) }),
  category: (value) => ({ category: categoryCode(value) }),
  severity: (value) => ({ severity: severityCode(value) }),
  recoverability: (value) => ({ recoverability: recoverabilityCode(value) }),
  policy: (value) => ({ policy: policyCode(value.kind), policy_json: encodePolicy(value) }),
  reason: (value) => ({ reason: value === null ? null : reasonCode(value) }),
  archivedFrom: (value) => ({ archived_from: value === null ? null : stateCode(value) }),
  fingerprint: (value) => ({ fingerprint: value }),
  retries: (value) => ({ retries: value }),
  maxRetries: (value) => ({ max_retries: value }),
  replays: (value) => ({ replays: value }),
  backoffMs: (value) => ({ backoff_ms: value }),
  retryAt: (value) => ({ retry_at: encodeOptionalTime(value) }),
  settledAt: (value) => ({ settled_at: encodeOptionalTime(value) }),
  expiresAt: (value) => ({ expires_at: encodeOptionalTime(value) }),
  updatedAt: () => ({}),
  budgetSince: (value) => ({ budget_since: encodeOptionalTime(value) }),
  deferredSince: (value) => ({ deferred_since: encodeOptionalTime(value) }),
  lease: (value) => ({
    worker: value?.worker ?? null,
    leased_until: encodeOptionalTime(value?.expiresAt),
  }),
  tags: (value) => ({ tags: value.length > 0 ? JSON.stringify(value) : null }),
  headers: (value) => ({ headers: encodeObject(value) }),
  metadata: (value) => ({
    metadata: Object.keys(value).length > 0 ? JSON.stringify(value) : null,
  }),
  failure: (value) => ({ failure: JSON.stringify(value) }),
  review: (value) => ({ review: encodeObject(value) }),
  payload: (value) => ({ edit: JSON.stringify(factsOf(value)) }),
}

export function encodeChange(change: Change): RowChange {
  const { id, guard, action, entry } = change
  const set = encodePatch(change.set)
  // An edit leaves the letter where it is.
  if (action === 'edit') delete set.state
  set.updated_at = encodeTime(entry.at)
  const due = placeOf(set.state as number | undefined)
  if (due === 'ready') set.due_at = set.retry_at ?? set.updated_at
  else if (due === 'none') Object.assign(set, { due_at: null, wait: null })
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
  for (const [field, value] of Object.entries(patch))
    if (value !== undefined) {
      const encode = encoders[field as PatchKey] as (value: unknown) => ColumnValues
      Object.assign(set, encode(value))
    }
  return set
}

function placeOf(state: number | undefined): RowChange['due'] {
  if (state === undefined) return undefined
  if (state === pending) return 'ready'
  return state === archived ? 'resting' : 'none'
}

/** The `wait` of a letter whose change has due 'ready', and that nothing holds. */
export const readyWait = wait.ready

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
  const rounds: Map<string, ChangeGroup>[] = []
  const nextRound = new Map<string, number>()
  for (const [index, change] of changes.entries()) {
    const round = nextRound.get(change.id) ?? 0
    nextRound.set(change.id, round + 1)
    const groups = (rounds[round] ??= new Map<string, ChangeGroup>())
    const columns = Object.keys(change.set) as Column[]
    const shape = `${columns.join()} ${change.due} ${'epoch' in change.guard ? 'e' : 'v'}`
    const group = groups.get(shape)
    if (group) group.changes.push({ index, change })
    else groups.set(shape, { columns, due: change.due, changes: [{ index, change }] })
  }
  return rounds.map((groups) => [...groups.values()])
}

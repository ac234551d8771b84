import type {
  GroupChange,
  GroupChangeKind,
  GroupIgnoring,
  GroupNote,
  GroupResolution,
  GroupStatus,
} from '../letter/group.ts'
import type { Timestamp } from '../letter/time.ts'
import { countFailures, countInHour, type Seen } from './seen.ts'
import { compareVersions } from './versions.ts'

/** What people and letters did to a group. A group that nobody touched has no such record. */
export interface GroupState {
  status: GroupStatus
  resolved?: GroupResolution
  ignored?: GroupIgnoring
  assignee?: string
  /** The group that this one was merged into. */
  mergedInto?: string
  notes: GroupNote[]
  history: GroupChange[]
}

export const untouched: GroupState = { status: 'open', notes: [], history: [] }

const maxNotes = 100
const maxHistory = 100
/** The actor of changes that letters cause. */
const lettersActor = 'letters'

export type GroupAction =
  | { kind: 'resolve'; inVersion?: string }
  | { kind: 'ignore'; until?: Timestamp; count?: number; rate?: number }
  | { kind: 'reopen' }
  | { kind: 'assign'; assignee: string | null }
  | { kind: 'note'; text: string }
  | { kind: 'merge'; into: string }
  | { kind: 'split' }

export interface Actor {
  at: Timestamp
  by: string
}

/** The group after an action of a person. Every action is possible in every status. */
export function act(before: GroupState, action: GroupAction, { at, by }: Actor): GroupState {
  const change = (next: Partial<GroupState>, note?: string): GroupState =>
    withChange(before, next, { at, by, change: action.kind, ...(note ? { note } : {}) })
  switch (action.kind) {
    case 'resolve': {
      const { inVersion } = action
      const resolved = { at, by, ...(inVersion === undefined ? {} : { inVersion }) }
      return change({ status: 'resolved', resolved }, inVersion && `in version ${inVersion}`)
    }
    case 'ignore': {
      const { kind: _, ...limits } = action
      return change({ status: 'ignored', ignored: { at, by, ...limits, seen: 0 } }, inWords(limits))
    }
    case 'reopen':
      return change({ status: 'open' })
    case 'assign': {
      const { assignee: _, ...rest } = before
      const { assignee } = action
      const entry = { at, by, change: 'assign', note: assignee ?? 'nobody' } as const
      return withChange(rest, assignee === null ? {} : { assignee }, entry)
    }
    case 'note':
      return change({ notes: [...before.notes, { at, by, text: action.text }].slice(-maxNotes) })
    case 'merge':
      return change({ mergedInto: action.into }, `into ${action.into}`)
    case 'split': {
      const { mergedInto, ...rest } = before
      return withChange(rest, {}, { at, by, change: 'split', note: `from ${mergedInto}` })
    }
  }
}

/** Adds an entry to the history. A status that the group leaves takes its details with it. */
function withChange(
  before: GroupState,
  next: Partial<GroupState>,
  entry: Omit<GroupChange, 'from' | 'to'>,
): GroupState {
  const status = next.status ?? before.status
  const { resolved, ignored, ...rest } = { ...before, ...next }
  const change: GroupChange = { ...entry, from: before.status, to: status }
  return {
    ...rest,
    // A regressed group still shows in which version it was resolved.
    ...(resolved && (status === 'resolved' || status === 'regressed') ? { resolved } : {}),
    ...(ignored && status === 'ignored' ? { ignored } : {}),
    history: [...before.history, change].slice(-maxHistory),
  }
}

/** An entry in the history of another group: `fingerprint` was merged into it or split from it. */
export function recordMember(
  before: GroupState,
  change: Extract<GroupChangeKind, 'merge' | 'split'>,
  fingerprint: string,
  actor: Actor,
): GroupState {
  return withChange(before, {}, { ...actor, change, note: fingerprint })
}

function inWords({
  until,
  count,
  rate,
}: Omit<Extract<GroupAction, { kind: 'ignore' }>, 'kind'>): string {
  return [
    until === undefined ? '' : `until ${until}`,
    count === undefined ? '' : `until ${count} more failures`,
    rate === undefined ? '' : `until ${rate} failures in an hour`,
  ]
    .filter((part) => part !== '')
    .join(', ')
}

/** The status at a time: a group that was ignored until then is open. */
export function statusAt({ status, ignored }: GroupState, at: Timestamp): GroupStatus {
  const hasEnded = ignored?.until !== undefined && ignored.until <= at
  return status === 'ignored' && hasEnded ? 'open' : status
}

/**
 * The group after further failures. `fresh` are those, `all` includes earlier ones. Returns the
 * same object if nothing changes.
 */
export function afterFailures(
  before: GroupState,
  fresh: Seen,
  all: Seen,
  at: Timestamp,
): GroupState {
  const entry = { at, by: lettersActor }
  if (before.status === 'ignored' && before.ignored) {
    const ignored = countIgnored(before.ignored, fresh)
    const limit = passedLimit(ignored, fresh, all)
    if (limit !== undefined)
      return withChange(before, { status: 'open' }, { ...entry, change: 'limit', note: limit })
    return ignored === before.ignored ? before : { ...before, ignored }
  }
  if (before.status !== 'resolved' || !before.resolved) return before
  const version = regressingVersion(before.resolved, fresh, all)
  if (version === undefined) return before
  const note = version === '' ? {} : { note: `in version ${version}` }
  return withChange(before, { status: 'regressed' }, { ...entry, change: 'regress', ...note })
}

function countIgnored(ignored: GroupIgnoring, fresh: Seen): GroupIgnoring {
  if (fresh.lastAt <= ignored.at) return ignored
  return { ...ignored, seen: ignored.seen + countFailures(fresh) }
}

/** The limit that is passed, in words. */
function passedLimit(ignored: GroupIgnoring, fresh: Seen, all: Seen): string | undefined {
  const { at, until, count, rate, seen } = ignored
  if (fresh.lastAt <= at) return undefined
  if (until !== undefined && fresh.lastAt >= until) return `ignored until ${until}`
  if (count !== undefined && seen >= count) return `${seen} more failures`
  const inHour = countInHour(all, fresh.lastAt)
  if (rate !== undefined && inHour >= rate) return `${inHour} failures in an hour`
  return undefined
}

/** The version in which the group was seen again; "" if it has none. */
function regressingVersion(resolved: GroupResolution, fresh: Seen, all: Seen): string | undefined {
  for (const [version, { lastAt }] of fresh.versions) {
    const firstAt = all.versions.get(version)?.firstAt ?? lastAt
    if (lastAt > resolved.at && isAfterFix(version, firstAt, resolved)) return version
  }
  return undefined
}

/**
 * Whether a failure of this version shows that the fix does not work. Versions that are not semver
 * count as later if the group was first seen in them after it was resolved.
 */
function isAfterFix(
  version: string,
  firstAt: Timestamp,
  { at, inVersion }: GroupResolution,
): boolean {
  if (inVersion === undefined || version === '' || version === inVersion) return true
  const order = compareVersions(version, inVersion)
  return order === undefined ? firstAt > at : order >= 0
}

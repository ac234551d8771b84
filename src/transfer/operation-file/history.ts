import {
  actions,
  states,
  type Action,
  type DeadLetter,
  type HistoryEntry,
  type Json,
  type State,
} from '../../letter/letter.ts'
import { maxHistory } from '../../letter/history.ts'
import { toMs, toTimestamp } from '../../letter/time.ts'
import {
  categoryOf,
  importer,
  stateOf,
  type Entry,
  type EntryAction,
  type Item,
  type Status,
} from './item.ts'
import { withoutUndefined } from '../../check/keys.ts'

/**
 * The history of an item. Above the maximum, the entries after the first are omitted and counted.
 */
export function readHistory(item: Item): Pick<DeadLetter, 'history' | 'historyOmitted'> {
  const entries = item.history ?? []
  const historyOmitted = Math.max(0, entries.length - maxHistory)
  const entriesToRead =
    historyOmitted === 0 ? entries : [entries[0]!, ...entries.slice(historyOmitted + 1)]
  const enqueuedBy = item.metadata?.enqueuedBy ?? importer
  const history: HistoryEntry[] = []
  for (const entry of entriesToRead)
    history.push(readEntry(entry, history.at(-1)?.to ?? null, enqueuedBy))
  if (history.length === 0) {
    const at = toTimestamp(item.enqueuedAt)
    history.push({ at, actor: enqueuedBy, action: 'capture', from: null, to: 'pending' })
  }
  return { history, historyOmitted }
}

function readEntry(entry: Entry, from: State | null, enqueuedBy: string): HistoryEntry {
  const { action, to, by, note } = entry.metadata ?? {}
  const defaults = defaultEntry(entry.action, entry.status)
  const { error } = entry
  const entryNote = typeof note === 'string' ? note : foreignNote(entry.metadata)
  const category = categoryOf(error?.category)
  return {
    at: toTimestamp(entry.timestamp),
    actor: typeof by === 'string' ? by : defaultActor(entry.action, enqueuedBy),
    action: actions.find((known) => known === action) ?? defaults.action,
    from,
    to: states.find((known) => known === to) ?? defaults.to,
    ...(error
      ? { failure: { name: 'Error', message: error.message.slice(0, 500), category } }
      : {}),
    ...(entryNote === undefined ? {} : { note: entryNote }),
  }
}

/** Metadata of an entry from another system, as a note. */
function foreignNote(metadata: Record<string, unknown> | undefined): string | undefined {
  if (!metadata || ['action', 'to', 'by'].some((key) => key in metadata)) return undefined
  return Object.keys(metadata).length === 0 ? undefined : JSON.stringify(metadata).slice(0, 500)
}

/**
 * One entry of a letter's history. Its metadata has only the values that differ from the defaults.
 */
export function writeEntry(entry: HistoryEntry, letter: DeadLetter, enqueuedBy: Json): object {
  const isPermanent = entry.action === 'park' && letter.reason === 'permanent'
  const to = entry.to ?? letter.state
  const action = isPermanent ? 'failed' : entryActionOf[entry.action]
  const status = isPermanent ? 'failed' : entryStatusOf[to]
  const defaults = defaultEntry(action, status)
  const metadata = withoutUndefined({
    action: entry.action === defaults.action ? undefined : entry.action,
    to: to === defaults.to ? undefined : to,
    by: entry.actor === defaultActor(action, enqueuedBy) ? undefined : entry.actor,
    note: entry.note,
  })
  const { failure } = entry
  return withoutUndefined({
    timestamp: toMs(entry.at),
    action,
    status,
    error: failure ? { category: failure.category, message: failure.message } : undefined,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
  })
}

function defaultActor<T extends Json>(action: EntryAction, enqueuedBy: T): T | string {
  return action === 'enqueued' ? enqueuedBy : importer
}

/** The meaning of an entry without metadata. */
function defaultEntry(action: EntryAction, status: Status): { action: Action; to: State } {
  const defaults: Record<EntryAction, Action> = {
    enqueued: 'capture',
    retry: 'claim',
    success: 'resolve',
    failed: status === 'failed' ? 'park' : 'reschedule',
    abandoned: 'exhaust',
    reviewed: status === 'manual_review' ? 'park' : 'review',
  }
  return { action: defaults[action], to: stateOf[status] }
}

const entryActionOf: Record<Action, EntryAction> = {
  capture: 'enqueued',
  occur: 'enqueued',
  claim: 'retry',
  resolve: 'success',
  reschedule: 'failed',
  exhaust: 'abandoned',
  park: 'reviewed',
  release: 'retry',
  retry: 'retry',
  review: 'reviewed',
  edit: 'reviewed',
  replay: 'retry',
  archive: 'abandoned',
  restore: 'enqueued',
  remove: 'abandoned',
  evict: 'abandoned',
  wake: 'enqueued',
  note: 'reviewed',
}

const entryStatusOf: Record<State, Status> = {
  pending: 'queued',
  retrying: 'retrying',
  resolved: 'success',
  exhausted: 'abandoned',
  parked: 'manual_review',
  archived: 'abandoned',
}

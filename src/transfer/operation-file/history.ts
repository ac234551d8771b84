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

/** The history of an item; past the bound the oldest but the first are left out, and counted. */
export function readHistory(item: Item): Pick<DeadLetter, 'history' | 'historyOmitted'> {
  const entries = item.history ?? []
  const historyOmitted = Math.max(0, entries.length - maxHistory)
  const kept = historyOmitted === 0 ? entries : [entries[0]!, ...entries.slice(historyOmitted + 1)]
  const enqueuedBy = item.metadata?.enqueuedBy ?? importer
  const history: HistoryEntry[] = []
  for (const entry of kept) history.push(readEntry(entry, history.at(-1)?.to ?? null, enqueuedBy))
  if (history.length === 0) {
    const at = toTimestamp(item.enqueuedAt)
    history.push({ at, actor: enqueuedBy, action: 'capture', from: null, to: 'pending' })
  }
  return { history, historyOmitted }
}

function readEntry(entry: Entry, from: State | null, enqueuedBy: string): HistoryEntry {
  const { action, to, by, note } = entry.metadata ?? {}
  const usual = usualEntry(entry.action, entry.status)
  const { error } = entry
  const told = typeof note === 'string' ? note : foreign(entry.metadata)
  const category = categoryOf(error?.category)
  return {
    at: toTimestamp(entry.timestamp),
    actor: typeof by === 'string' ? by : usualActor(entry.action, enqueuedBy),
    action: actions.find((known) => known === action) ?? usual.action,
    from,
    to: states.find((known) => known === to) ?? usual.to,
    ...(error
      ? { failure: { name: 'Error', message: error.message.slice(0, 500), category } }
      : {}),
    ...(told === undefined ? {} : { note: told }),
  }
}

/** Metadata of an entry that is not ours, as a note. */
function foreign(metadata: Record<string, unknown> | undefined): string | undefined {
  if (!metadata || ['action', 'to', 'by'].some((key) => key in metadata)) return undefined
  return Object.keys(metadata).length === 0 ? undefined : JSON.stringify(metadata).slice(0, 500)
}

/**
 * One entry of a letter's history. Its metadata says only what would be read differently without
 * it.
 */
export function writeEntry(entry: HistoryEntry, letter: DeadLetter, enqueuedBy: Json): object {
  const hopeless = entry.action === 'park' && letter.reason === 'permanent'
  const to = entry.to ?? letter.state
  const action = hopeless ? 'failed' : entryActionOf[entry.action]
  const status = hopeless ? 'failed' : entryStatusOf[to]
  const usual = usualEntry(action, status)
  const metadata = withoutUndefined({
    action: entry.action === usual.action ? undefined : entry.action,
    to: to === usual.to ? undefined : to,
    by: entry.actor === usualActor(action, enqueuedBy) ? undefined : entry.actor,
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

function usualActor<T extends Json>(action: EntryAction, enqueuedBy: T): T | string {
  return action === 'enqueued' ? enqueuedBy : importer
}

/** What an entry means when nothing more is said about it. */
function usualEntry(action: EntryAction, status: Status): { action: Action; to: State } {
  const usual: Record<EntryAction, Action> = {
    enqueued: 'capture',
    retry: 'claim',
    success: 'resolve',
    failed: status === 'failed' ? 'park' : 'reschedule',
    abandoned: 'exhaust',
    reviewed: status === 'manual_review' ? 'park' : 'review',
  }
  return { action: usual[action], to: stateOf[status] }
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
}

const entryStatusOf: Record<State, Status> = {
  pending: 'queued',
  retrying: 'retrying',
  resolved: 'success',
  exhausted: 'abandoned',
  parked: 'manual_review',
  archived: 'abandoned',
}

import type { Json } from '../../letter/letter.ts'
import { toMs } from '../../letter/time.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { changeSchema, type AlertChange } from './change.ts'

/** A listed change. */
export interface ListedChange extends AlertChange {
  version: number
  /** The notifications of the change are in the outbox. */
  queued: boolean
}

const eventKind = 'alert-event'
/** Events that are kept. */
export const maxEvents = 500
const maxEventAgeMs = 30 * 86_400_000
/** A change that was not queued for this time is not sent any more. */
export const maxUnsentAgeMs = 86_400_000

/** Adds a change to the list. Harmless to repeat. */
export async function listChange(records: Records, change: AlertChange): Promise<void> {
  await records.put(eventKind, change.id, { ...change, queued: false } as unknown as Json, 0)
}

/** Marks a change whose notifications are in the outbox. Harmless to repeat. */
export async function markQueued(
  records: Records,
  { version, ...change }: ListedChange,
): Promise<void> {
  const value = { ...change, queued: true } as unknown as Json
  await records.put(eventKind, change.id, value, version)
}

/** The listed changes, the newest first. Unreadable records are left out. */
export async function readChanges(records: Records): Promise<ListedChange[]> {
  return (await records.list(eventKind)).flatMap(toChange).toReversed()
}

function toChange({ value, version }: DocumentRecord): ListedChange[] {
  const { success, data } = changeSchema.safeParse(value)
  if (!success) return []
  return [{ ...data, version, queued: (value as { queued?: unknown }).queued === true }]
}

/** Removes changes beyond the limits, except for those that can still be sent. */
export async function removeOldChanges(records: Records, nowMs: number): Promise<void> {
  const changes = await readChanges(records)
  for (const [index, { id, at, queued }] of changes.entries()) {
    const ageMs = nowMs - toMs(at)
    const isUnsent = !queued && ageMs <= maxUnsentAgeMs
    if ((index >= maxEvents || ageMs > maxEventAgeMs) && !isUnsent)
      await records.remove(eventKind, id)
  }
}

// Replayed letters that wait before they are resolved: option confirmReplayMs.
import type { Clock } from '../clock/clock.ts'
import { states, type DeadLetter, type Json } from '../letter/letter.ts'
import { replaysOfLetter } from '../letter/lineage.ts'
import * as moves from '../letter/moves.ts'
import { confirmedAt } from '../letter/replay-confirmation.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { DocumentRecord, Store } from '../store.ts'
import { findLineage, findNewerBySource } from './lineage.ts'

/** A record for letters that wait until the same time. Its id starts with that time. */
const kind = 'replay-confirmation'
/** Letters per record, and the maximum number per sweep. */
const lettersPerRecord = 500
/** Letters that are loaded with their payloads at once. */
const payloadPage = 50

/** A letter that was published, and how its change is recorded. */
export interface PublishedLetter {
  letter: DeadLetter
  /** The id of the message, if the route knows it. */
  messageId?: string | undefined
  by: moves.Mover
}

export interface ConfirmationOptions {
  store: Store
  clock: Clock
  /** The rules of a queue. */
  repairRulesFor: (queue: string) => { confirmReplayMs: number }
}

/**
 * The changes that replays make, in the same order. Letters of queues with `confirmReplayMs` wait:
 * a record says so before they change. A record of a letter that did not change has no effect.
 */
export async function prepareReplays(
  { store, clock, repairRulesFor }: ConfirmationOptions,
  published: readonly PublishedLetter[],
): Promise<moves.Change[]> {
  const nowMs = clock.now()
  const confirmAts = published.map(({ letter: { queue } }) => {
    const { confirmReplayMs } = repairRulesFor(queue)
    return confirmReplayMs > 0 ? toTimestamp(nowMs + confirmReplayMs) : undefined
  })
  const waiting = published.map((one, index) => ({ ...one, confirmAt: confirmAts[index] }))
  for (const [confirmAt, some] of Map.groupBy(waiting, (one) => one.confirmAt)) {
    if (confirmAt === undefined) continue
    for (let start = 0; start < some.length; start += lettersPerRecord) {
      const letters = some.slice(start, start + lettersPerRecord).map(toEntry)
      await store.records.put(kind, `${confirmAt}:${clock.id()}`, letters)
    }
  }
  return waiting.map(({ letter, by, confirmAt }) =>
    moves.replay(letter, by, replaysOfLetter(letter) + 1, confirmAt),
  )
}

/** A letter in a record: its id, and the id of its message. */
type Entry = [letterId: string, messageId: string | null]

function toEntry({ letter, messageId }: PublishedLetter): Entry & Json {
  return [letter.id, messageId ?? null]
}

interface SweepContext {
  store: Store
  clock: Clock
  hub: ObserverHub
}

/**
 * A chore of the sweep: resolves replayed letters whose confirmation is due. A record is removed
 * last: after a crash, the next sweep finds its letters resolved.
 */
export async function confirmReplays(context: SweepContext): Promise<{ hasMore: boolean }> {
  const { store, clock } = context
  const now = toTimestamp(clock.now())
  for (let letters = 0; letters < lettersPerRecord;) {
    const [record] = await store.records.list(kind, { limit: 1 })
    if (!record || timeOf(record) > now) return { hasMore: false }
    const entries = record.value as Entry[]
    for (let start = 0; start < entries.length; start += payloadPage)
      await confirmPage(context, timeOf(record), entries.slice(start, start + payloadPage))
    await store.records.remove(kind, record.id)
    letters += entries.length
  }
  return { hasMore: true }
}

function timeOf({ id }: DocumentRecord): Timestamp {
  return id.slice(0, id.lastIndexOf(':'))
}

/** Letters that do not wait until this time were not changed, or somebody acted on them. */
async function confirmPage(
  { store, clock, hub }: SweepContext,
  confirmAt: Timestamp,
  entries: readonly Entry[],
): Promise<void> {
  const messageIds = new Map(entries)
  const letters = (await store.get([...messageIds.keys()])).filter(
    (letter) => confirmedAt(letter) === confirmAt,
  )
  const by = { at: toTimestamp(clock.now()), actor: 'sweep', guard: 'version' } as const
  const changes = await Promise.all(
    letters.map(async (letter) =>
      changeOf(letter, by, await findNewer(store, letter, messageIds.get(letter.id))),
    ),
  )
  const results = await store.apply(changes)
  for (const [index, change] of changes.entries())
    if (results[index] === 'written') hub.emitChangeOf(letters[index]!, change)
  // Somebody changed these letters meanwhile, perhaps only by a note.
  const changed = letters.filter((_, index) => results[index] === 'conflict')
  if (changed.length > 0)
    await confirmPage(
      { store, clock, hub },
      confirmAt,
      changed.map(({ id }) => [id, messageIds.get(id) ?? null]),
    )
}

function changeOf(
  letter: DeadLetter,
  by: moves.Mover,
  newer: { id: string } | undefined,
): moves.Change {
  if (newer)
    return moves.resolve(letter, {
      ...by,
      note: `the replayed message died again: see letter ${newer.id}`,
    })
  if (hasOccurredAgain(letter))
    return moves.parkUnconfirmed(letter, {
      ...by,
      note: 'the same failure was captured again before the replay was confirmed',
    })
  return moves.resolve(letter, { ...by, note: 'the replay is confirmed: no newer letter' })
}

/** An occurrence was added to this letter since its replay, instead of a newer letter. */
function hasOccurredAgain({ history, occurrences }: DeadLetter): boolean {
  if (occurrences === 1) return false
  const replayed = history.findLastIndex(({ action }) => action === 'replay')
  return history.slice(replayed + 1).some(({ action }) => action === 'occur')
}

/** The letter of the replayed message, if it died again. */
async function findNewer(
  store: Store,
  letter: DeadLetter,
  messageId: string | null | undefined,
): Promise<{ id: string } | undefined> {
  if (typeof messageId === 'string') {
    const filter = { sourceId: messageId, state: [...states], limit: 1 }
    return (await store.find(filter)).items[0]
  }
  if (letter.source.kind === 'pipeline') return findNewerBySource(store, letter)
  const all = await findLineage(store, letter.id)
  return all[all.findIndex(({ id }) => id === letter.id) + 1]
}

import type { LetterView } from 'redrive/api'

type Entry = LetterView['history'][number]

/** An entry of the history for people. */
export interface TimelineEvent {
  at: string
  label: string
  actor: string
  /** The state after it. Null: the letter is gone. */
  state: Entry['to']
  failure?: Entry['failure']
  note?: string
  /** The time between this event and the older one below it. */
  gapMs: number
  /** Older events that are not stored and would be below it. */
  omitted: number
}

/** The newest first. The history leaves out entries after the first one if it is too long. */
export function timelineOf({
  history,
  historyOmitted,
}: Pick<LetterView, 'history' | 'historyOmitted'>): TimelineEvent[] {
  return history
    .map((entry, index): TimelineEvent => {
      const older = history[index - 1]
      return {
        at: entry.at,
        label: labelOf(entry),
        actor: entry.actor,
        state: entry.to,
        ...(entry.failure ? { failure: entry.failure } : {}),
        ...(entry.note === undefined ? {} : { note: entry.note }),
        gapMs: older ? Math.max(0, Date.parse(entry.at) - Date.parse(older.at)) : 0,
        omitted: index === 1 ? historyOmitted : 0,
      }
    })
    .toReversed()
}

const labels: Record<Entry['action'], string> = {
  capture: 'Captured',
  occur: 'Failed again',
  claim: 'Taken over from a worker that stopped',
  resolve: 'Resolved',
  reschedule: 'Retry failed, next one planned',
  exhaust: 'Last retry failed',
  park: 'Parked',
  release: 'Returned without a run',
  retry: 'Retry requested',
  review: 'Reviewed',
  edit: 'Payload or fields edited',
  replay: 'Replayed',
  archive: 'Archived',
  restore: 'Restored',
  remove: 'Removed',
  evict: 'Removed to make room',
  wake: 'Continued: a worker can run it',
  note: 'Note',
}

function labelOf({ action, from, to, failure }: Entry): string {
  if (action === 'reschedule' && !failure) return 'Next retry planned'
  if (action === 'resolve' && from === 'retrying') return 'Retry succeeded'
  if (action === 'review')
    return (
      { pending: 'Requeued', resolved: 'Resolved after review', archived: 'Discarded' }[
        String(to)
      ] ?? labels.review
    )
  return labels[action]
}

const minHeight = 18
const maxHeight = 72

/** The height of a gap grows with the logarithm of its length: 1 s to 1 d. */
export function gapHeight(ms: number): number {
  const share = Math.log(Math.max(1, ms / 1000)) / Math.log(86_400)
  return Math.round(minHeight + Math.min(1, share) * (maxHeight - minHeight))
}

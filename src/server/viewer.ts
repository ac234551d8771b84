import { RedriveError } from '../errors.ts'
import type { LetterFilter } from '../letter/query.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import type { Caller } from './caller.ts'

/** A caller, and what is hidden from it. */
export interface Viewer extends Caller {
  /** What is hidden of the letters of a queue. Undefined: nothing. */
  redaction(queue: string): Redaction | undefined
  /** The redaction of every queue that has one, for text that may come from any of them. */
  redactions(): Redaction[]
}

/** The caller as it reads letters: redacted, also if it may reveal them. */
export function viewerOf(
  caller: Caller,
  dlq: Pick<DeadLetterQueue, 'redaction' | 'redactions'>,
): Viewer {
  return {
    ...caller,
    redaction: (queue) => dlq.redaction(queue),
    redactions: () => dlq.redactions(),
  }
}

/** The same caller with nothing redacted. */
export function withoutRedaction(viewer: Viewer): Viewer {
  return { ...viewer, redaction: () => undefined, redactions: () => [] }
}

export function mayReveal({ permissions }: Pick<Caller, 'permissions'>): boolean {
  return permissions.has('payload:reveal')
}

/** JSON that may come from any queue, such as the title of a bulk action. */
export function redactAny<T>(value: T, viewer: Pick<Viewer, 'redactions'>): T {
  return viewer.redactions().reduce((shown, redaction) => redaction.strings(shown), value)
}

/**
 * Rejects filters whose result would tell a caller what is hidden. A filter by an exact value is
 * allowed if that value would be shown. A filter by a substring is allowed if what is stored is
 * redacted.
 */
export function checkProbe(filter: Partial<LetterFilter>, viewer: Viewer): void {
  if (mayReveal(viewer)) return
  const redactions = redactionsOf(filter, viewer)
  if (filter.text !== undefined) checkText('text', redactions, viewer)
  for (const name of ['tag', 'lane', 'sourceId'] as const) {
    const value = filter[name]
    if (value !== undefined && redactions.some((one) => one.text(value) !== value))
      throw hiddenFrom(viewer, name)
  }
  for (const [key, value] of Object.entries(filter.metadata ?? {})) {
    const given = { [key]: value }
    if (redactions.some((one) => !isSame(one.json(given, 'metadata'), given)))
      throw hiddenFrom(viewer, `metadata.${key}`)
  }
}

/** Rejects a search in text that is hidden, but stored. `what` is what the caller has asked for. */
export function checkTextProbe(
  what: string,
  filter: Partial<LetterFilter>,
  viewer: Viewer,
  isStored: (redaction: Redaction) => boolean = ({ atCapture }) => !atCapture,
): void {
  if (!mayReveal(viewer)) checkText(what, redactionsOf(filter, viewer), viewer, isStored)
}

function checkText(
  what: string,
  redactions: readonly Redaction[],
  viewer: Viewer,
  isStored: (redaction: Redaction) => boolean = ({ atCapture }) => !atCapture,
): void {
  if (redactions.some(isStored)) throw hiddenFrom(viewer, what)
}

/** The redactions of the queues that a filter names. Without any: of all queues. */
function redactionsOf({ queue }: Partial<LetterFilter>, viewer: Viewer): Redaction[] {
  if (queue === undefined) return viewer.redactions()
  return [queue].flat().flatMap((name) => viewer.redaction(name) ?? [])
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function hiddenFrom({ name }: Viewer, what: string): RedriveError {
  return new RedriveError(
    'FORBIDDEN',
    `${name} may not use ${what} here: the result would show what redaction hides, which needs the permission payload:reveal; name queues without redaction with \`queue\``,
  )
}

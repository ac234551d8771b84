import { toFailure } from '../letter/failure.ts'
import type { DeadLetter, Patch } from '../letter/letter.ts'
import type { RedriveEvent } from '../observer.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'

/** What is hidden in events. */
export interface EventRedaction {
  redaction(queue: string): Redaction | undefined
  redactions(): Redaction[]
}

/**
 * Returns a function that redacts events for observers whose output leaves the process: a log, or a
 * notification. A letter is in several events and has several observers: it is redacted once.
 */
export function createEventRedactor(rules: EventRedaction): (event: RedriveEvent) => RedriveEvent {
  const known = new WeakMap<DeadLetter, { redaction: Redaction; redacted: DeadLetter }>()
  const redactLetter = (letter: DeadLetter, redaction: Redaction): DeadLetter => {
    const found = known.get(letter)
    if (found?.redaction === redaction) return found.redacted
    const redacted = redaction.letter(letter)
    known.set(letter, { redaction, redacted })
    return redacted
  }
  return (event) => redactEvent(event, rules, redactLetter)
}

function redactEvent(
  event: RedriveEvent,
  rules: EventRedaction,
  redactLetter: (letter: DeadLetter, redaction: Redaction) => DeadLetter,
): RedriveEvent {
  const any = <T>(value: T): T =>
    rules.redactions().reduce((shown, redaction) => redaction.strings(shown), value)
  if ('letter' in event && event.letter) {
    const redaction = rules.redaction(event.letter.queue)
    if (!redaction) return event
    const letter = redactLetter(event.letter, redaction)
    if (event.type !== 'changed') return { ...event, letter }
    const { set, entry } = event.change
    const change = { ...event.change, set: pick(set, letter), entry: redaction.entry(entry) }
    return { ...event, letter, change }
  }
  if (rules.redactions().length === 0) return event
  switch (event.type) {
    case 'error':
    case 'spooling': {
      const { name, message, code } = toFailure(event.error, '')
      return { ...event, error: { name, message: any(message), ...(code ? { code } : {}) } }
    }
    case 'group':
      return {
        ...event,
        title: any(event.title),
        ...(event.note === undefined ? {} : { note: any(event.note) }),
      }
    case 'bulk': {
      const { stopReason, problem } = event.action
      const reasons = any({
        ...(stopReason ? { stopReason } : {}),
        ...(problem ? { problem } : {}),
      })
      return { ...event, action: { ...event.action, ...reasons } }
    }
    case 'queue-paused':
      return { ...event, reason: any(event.reason) }
    case 'set-aside':
      return { ...event, why: any(event.why) }
    default:
      return event
  }
}

/** The fields of a change with the values of the letter after it. */
function pick(set: Patch, letter: DeadLetter): Patch {
  const fields = Object.entries(set).map(([key, value]) => [
    key,
    value === null ? null : letter[key as keyof Patch],
  ])
  return Object.fromEntries(fields) as Patch
}

import { isOpen, type DeadLetter } from '../../letter/letter.ts'
import { toMs } from '../../letter/time.ts'
import type { RedriveEvent } from '../../observer.ts'

/** What was done with a letter, for the metrics of dead messages. */
export interface HandledLetter {
  letter: DeadLetter
  action: 'processed' | 'replayed' | 'discarded'
  /** How old the letter was. */
  ageSeconds: number
  /** Absent if no handler ran, because a person decided. */
  durationMs?: number
}

/**
 * The letter that an event has handled, if any. A removed letter does not tell when it was removed:
 * without `nowMs`, its age is that of its last change.
 */
export function handledLetterOf(event: RedriveEvent, nowMs?: number): HandledLetter | undefined {
  const handled = (
    letter: DeadLetter,
    action: HandledLetter['action'],
    durationMs?: number,
  ): HandledLetter => {
    const ageMs = (nowMs ?? toMs(letter.updatedAt)) - toMs(letter.deadLetteredAt)
    return {
      letter,
      action,
      ageSeconds: Math.max(0, ageMs / 1000),
      ...(durationMs === undefined ? {} : { durationMs }),
    }
  }
  switch (event.type) {
    case 'resolved':
      return handled(event.letter, 'processed', event.durationMs)
    case 'removed':
      return event.letter && isOpen(event.letter.state)
        ? handled(event.letter, 'discarded')
        : undefined
    case 'changed': {
      const { letter, change } = event
      if (change.action === 'replay' && letter.state === 'resolved')
        return handled(letter, 'replayed')
      if (change.action !== 'review') return undefined
      if (letter.state === 'archived') return handled(letter, 'discarded')
      return letter.state === 'resolved' ? handled(letter, 'processed') : undefined
    }
    default:
      return undefined
  }
}

/** The name of a queue of letters among mailboxes for dead messages. */
export function letterQueueName(queue: string): string {
  return `letters of ${queue}`
}

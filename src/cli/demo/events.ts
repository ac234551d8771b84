import { toFailure } from '../../letter/failure.ts'
import { toMs } from '../../letter/time.ts'
import type { RedriveEvent } from '../../observer.ts'
import { cut, line, paint, span, type Style } from '../print.ts'
import { failureLine } from '../standing.ts'

/** An event in one line for people, before it is known how wide a line may be. */
export interface EventLine {
  time: string
  verb: string
  style: Style | undefined
  text: string
}

/** Undefined for events that say nothing new. */
export function eventLine(event: RedriveEvent, nowMs: number): EventLine | undefined {
  const told = tell(event, nowMs)
  if (!told) return undefined
  const [style, verb, queue, text] = told
  const time = new Date(nowMs).toISOString().slice(11, 19)
  return { time, verb, style, text: `${line(queue).padEnd(16)} ${line(text)}`.trimEnd() }
}

export function printEvent({ time, verb, style, text }: EventLine, width = Infinity): string {
  const beginning = `${time} ${verb.padEnd(11)} `
  return `${time} ${paint(style, verb.padEnd(11))} ${cut(text, width - beginning.length)}`
}

type Told = [style: Style | undefined, verb: string, queue: string, text: string]

function tell(event: RedriveEvent, nowMs: number): Told | undefined {
  switch (event.type) {
    case 'captured': {
      const { letter } = event
      const next = letter.retryAt ? `, again in ${wait(letter.retryAt, nowMs)}` : ''
      return [
        'yellow',
        'captured',
        letter.queue,
        `${failureLine(letter)} (${letter.category}${next})`,
      ]
    }
    case 'resolved': {
      const { queue, retries } = event.letter
      return ['green', 'resolved', queue, retries === 0 ? '' : `with retry ${retries}`]
    }
    case 'rescheduled': {
      const { letter } = event
      const next = letter.retryAt ? wait(letter.retryAt, nowMs) : 'now'
      return [
        'cyan',
        'rescheduled',
        letter.queue,
        `retry ${letter.retries} of ${letter.maxRetries} failed, again in ${next}`,
      ]
    }
    case 'exhausted':
      return [
        'red',
        'exhausted',
        event.letter.queue,
        `after ${event.letter.retries} retries: ${failureLine(event.letter)}`,
      ]
    case 'parked':
      return [
        'red',
        'parked',
        event.letter.queue,
        event.letter.history.at(-1)?.note ?? event.letter.reason ?? '',
      ]
    case 'stuck':
      return ['yellow', 'stuck', event.letter.queue, 'its handler ignores the signal to stop']
    case 'lease-lost':
      return ['yellow', 'lease lost', event.letter.queue, '']
    case 'changed': {
      const { action, entry } = event.change
      if (action !== 'retry' && action !== 'review') return undefined
      return [
        'cyan',
        action === 'retry' ? 'retry' : 'reviewed',
        event.letter.queue,
        `${entry.note ?? 'due now'}, by ${entry.actor}`,
      ]
    }
    case 'breaker': {
      const until =
        event.until === undefined
          ? ''
          : ` for ${wait(event.until, nowMs)}: its letters wait, no retry is spent`
      return ['yellow', 'breaker', event.name, `${event.state}${until}`]
    }
    case 'alert': {
      const { queue = '', summary } = event.alert
      const raised = event.state === 'raised'
      return [raised ? 'red' : 'green', raised ? 'alert' : 'all clear', queue, summary]
    }
    case 'swept':
      return [
        undefined,
        'swept',
        '',
        `${event.archived} archived, ${event.removed} removed, ${event.parked} parked`,
      ]
    case 'error':
      return ['red', 'error', event.during, toFailure(event.error, '').message]
    default:
      return undefined
  }
}

function wait(at: string, nowMs: number): string {
  return span(Math.max(0, Math.ceil((toMs(at) - nowMs) / 1000) * 1000))
}

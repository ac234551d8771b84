import { toFailure } from '../../letter/failure.ts'
import { toMs } from '../../letter/time.ts'
import type { RedriveEvent } from '../../observer.ts'
import { truncate, escapeLine, paint, formatDuration, type Style } from '../print.ts'
import { formatFailureLine } from '../letter-format.ts'

/** An event as one line for people, not yet cut to the width of the terminal. */
export interface EventLine {
  time: string
  verb: string
  style: Style | undefined
  text: string
}

/** Undefined for events that the demo does not print. */
export function toEventLine(event: RedriveEvent, nowMs: number): EventLine | undefined {
  const parts = describeEvent(event, nowMs)
  if (!parts) return undefined
  const [style, verb, queue, text] = parts
  const time = new Date(nowMs).toISOString().slice(11, 19)
  return {
    time,
    verb,
    style,
    text: `${escapeLine(queue).padEnd(16)} ${escapeLine(text)}`.trimEnd(),
  }
}

export function formatEventLine({ time, verb, style, text }: EventLine, width = Infinity): string {
  const beginning = `${time} ${verb.padEnd(11)} `
  return `${time} ${paint(style, verb.padEnd(11))} ${truncate(text, width - beginning.length)}`
}

type EventParts = [style: Style | undefined, verb: string, queue: string, text: string]

function describeEvent(event: RedriveEvent, nowMs: number): EventParts | undefined {
  switch (event.type) {
    case 'captured': {
      const { letter } = event
      const next = letter.retryAt ? `, again in ${formatWait(letter.retryAt, nowMs)}` : ''
      return [
        'yellow',
        'captured',
        letter.queue,
        `${formatFailureLine(letter)} (${letter.category}${next})`,
      ]
    }
    case 'resolved': {
      const { queue, retries } = event.letter
      return ['green', 'resolved', queue, retries === 0 ? '' : `with retry ${retries}`]
    }
    case 'rescheduled': {
      const { letter } = event
      const next = letter.retryAt ? formatWait(letter.retryAt, nowMs) : 'now'
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
        `after ${event.letter.retries} retries: ${formatFailureLine(event.letter)}`,
      ]
    case 'parked':
      return [
        'red',
        'parked',
        event.letter.queue,
        event.letter.history.at(-1)?.note ?? event.letter.reason ?? '',
      ]
    case 'stuck':
      return ['yellow', 'stuck', event.letter.queue, 'its handler ignores run.signal']
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
          : ` for ${formatWait(event.until, nowMs)}: its letters wait, no retry is spent`
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

function formatWait(at: string, nowMs: number): string {
  return formatDuration(Math.max(0, Math.ceil((toMs(at) - nowMs) / 1000) * 1000))
}

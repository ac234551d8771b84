import { hideSecrets } from '../open.ts'
import type { Clock } from '../../clock/clock.ts'
import { toMs } from '../../letter/time.ts'
import type { Store } from '../../store.ts'
import { queueCounts, queueTable } from '../commands/stats.ts'
import { cut, fromNow, line, lineWidth, paint, span } from '../print.ts'
import { printEvent, type EventLine } from './events.ts'

export interface PictureOptions {
  url: string
  store: Store
  clock: Clock
  startedMs: number
  paused: boolean
  /** The newest last. */
  events: readonly EventLine[]
  rows: number
}

/**
 * The lines of the live view: queues by state, what is next, what happened, and what the keys do.
 */
export async function picture(options: PictureOptions): Promise<string[]> {
  const { url, store, clock, startedMs, paused, rows } = options
  const nowMs = clock.now()
  const [queues, next] = await Promise.all([
    queueCounts(store),
    store.find({ state: 'pending', order: 'due', limit: 3 }),
  ])
  const due = next.items.map(({ queue, retryAt, deadLetteredAt }) => {
    const atMs = toMs(retryAt ?? deadLetteredAt)
    return `${line(queue)} ${atMs < nowMs - 1000 ? 'waits' : fromNow(atMs, nowMs)}`
  })
  const width = lineWidth()
  const above = [
    cut(
      `redrive demo  ${line(hideSecrets(url))}  for ${span(nowMs - startedMs)}${paused ? '  PAUSED' : ''}`,
      width,
    ),
    '',
    ...queueTable(queues),
    '',
    cut(`Next: ${due.length > 0 ? due.join(', ') : 'nothing waits'}`, width),
    '',
  ]
  const below = ['', ...hints.map((hint) => paint('dim', cut(hint, width)))]
  // The last row stays free: a newline there would scroll.
  const room = Math.max(0, rows - 1 - above.length - below.length)
  const events = room > 0 ? options.events.slice(-room) : []
  const blank = Array.from({ length: Math.max(0, room - events.length) }, () => '')
  const told = events.map((event) => printEvent(event, width))
  return [...above, ...told, ...blank, ...below]
}

const hints = [
  'Waits are seconds here so that letters move; by default they are minutes.',
  'q or Ctrl-C ends   p pauses new calls   r retries what is parked or exhausted',
]

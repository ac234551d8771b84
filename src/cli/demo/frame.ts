import { hideSecrets } from '../open.ts'
import type { Clock } from '../../clock/clock.ts'
import { toMs } from '../../letter/time.ts'
import type { Store } from '../../store.ts'
import { formatQueueTable } from '../commands/stats.ts'
import { readQueueCounts } from '../letter-reader.ts'
import {
  truncate,
  formatRelativeTime,
  escapeLine,
  lineWidth,
  paint,
  formatDuration,
} from '../print.ts'
import { formatEventLine, type EventLine } from './events.ts'

export interface FrameOptions {
  url: string
  store: Store
  clock: Clock
  startedMs: number
  paused: boolean
  /** Oldest first. */
  events: readonly EventLine[]
  rows: number
}

/**
 * The lines of the live view: queues by state, the next letters, recent events, and the keys.
 */
export async function renderFrame(options: FrameOptions): Promise<string[]> {
  const { url, store, clock, startedMs, paused, rows } = options
  const nowMs = clock.now()
  const [queues, next] = await Promise.all([
    readQueueCounts(store),
    store.find({ state: 'pending', order: 'due', limit: 3 }),
  ])
  const due = next.items.map(({ queue, retryAt, deadLetteredAt }) => {
    const atMs = toMs(retryAt ?? deadLetteredAt)
    return `${escapeLine(queue)} ${atMs < nowMs - 1000 ? 'overdue' : formatRelativeTime(atMs, nowMs)}`
  })
  const width = lineWidth()
  const above = [
    truncate(
      `redrive demo  ${escapeLine(hideSecrets(url))}  for ${formatDuration(nowMs - startedMs)}${paused ? '  PAUSED' : ''}`,
      width,
    ),
    '',
    ...formatQueueTable(queues),
    '',
    truncate(`Next: ${due.length > 0 ? due.join(', ') : 'no letter'}`, width),
    '',
  ]
  const below = ['', ...hints.map((hint) => paint('dim', truncate(hint, width)))]
  // The last row stays free: a newline there would scroll.
  const freeRows = Math.max(0, rows - 1 - above.length - below.length)
  const events = freeRows > 0 ? options.events.slice(-freeRows) : []
  const blank = Array.from({ length: Math.max(0, freeRows - events.length) }, () => '')
  const eventLines = events.map((event) => formatEventLine(event, width))
  return [...above, ...eventLines, ...blank, ...below]
}

const hints = [
  'Delays are seconds here; by default they are minutes.',
  'q or Ctrl-C stops   p pauses new calls   r retries parked and exhausted letters',
]

import { sleep } from '../clock/clock.ts'
import type { BulkAction, BulkProgress } from '../letter/bulk-action.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import type { OpenedQueue } from './open.ts'
import { formatCount, formatDuration } from './print.ts'
import { createProgressLine } from './progress-line.ts'
import { stopOnSignal, stoppedExit } from './stop-on-signal.ts'

/** How often the progress of an action is read. */
const everyMs = 100
const barWidth = 20

/** What to wait for: until all letters were acted on, or until their outcomes are known too. */
export type Until = 'acted' | 'finished'

/**
 * Runs an action in this process, with other workers of the store, and shows its progress. A signal
 * pauses the action and prints how to resume it. Resolves with the action as it then is.
 */
export async function followAction(
  { dlq, clock }: OpenedQueue,
  start: () => Promise<BulkAction>,
  until: Until,
): Promise<BulkAction> {
  const line = createProgressLine(process.stderr, clock)
  const { signal, end } = stopOnSignal()
  const startedMs = clock.mono()
  try {
    dlq.start()
    let action = await start()
    const before = doneOf(action.progress, until)
    while (isUnderway(action, until)) {
      if (signal.aborted) return await pauseAction(dlq, action)
      const elapsedMs = clock.mono() - startedMs
      line.show(formatProgress(action, until, before, elapsedMs), shareOf(action, until))
      await sleep(clock, everyMs, signal)
      action = await dlq.bulkAction(action.id)
    }
    return action
  } finally {
    line.close()
    end()
  }
}

function isUnderway({ state, progress }: BulkAction, until: Until): boolean {
  return state === 'running' && (until === 'finished' || progress.pending > 0)
}

async function pauseAction(dlq: DeadLetterQueue, { id }: BulkAction): Promise<BulkAction> {
  const paused = await dlq.pause(id)
  process.stderr.write(
    `Paused after ${formatCount(paused.count - paused.progress.pending, 'letter')}. Continue with: redrive bulk resume ${id}\n`,
  )
  process.exitCode = stoppedExit
  return paused
}

/** Letters whose outcome is known, or that were acted on. */
function doneOf(progress: BulkProgress, until: Until): number {
  const all = Object.values(progress).reduce((sum, count) => sum + count, 0)
  const { pending, waiting } = progress
  return until === 'finished' ? all - pending - waiting : all - pending
}

function shareOf({ count, progress }: BulkAction, until: Until): number {
  return count === 0 ? 1 : doneOf(progress, until) / count
}

/** A bar, the share, the numbers, the rate and the remaining time, in less than 80 columns. */
function formatProgress(
  action: BulkAction,
  until: Until,
  before: number,
  elapsedMs: number,
): string {
  const { action: name, count, progress } = action
  const share = shareOf(action, until)
  const filled = Math.round(share * barWidth)
  const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled)
  const done = doneOf(progress, until)
  const rate = elapsedMs > 0 ? (1000 * (done - before)) / elapsedMs : 0
  const left = rate > 0 ? `  ${formatDuration((1000 * (count - done)) / rate)} left` : ''
  const failed = progress.failed > 0 ? `  ${progress.failed.toLocaleString('en')} failed` : ''
  const numbers = `${done.toLocaleString('en')} of ${count.toLocaleString('en')}`
  const perSecond = `${Math.round(rate).toLocaleString('en')}/s`
  return `${name} ${bar} ${Math.floor(100 * share)} %  ${numbers}  ${perSecond}${left}${failed}`
}

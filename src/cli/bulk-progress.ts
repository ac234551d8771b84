import { sleep } from '../clock/clock.ts'
import type { BulkAction, BulkProgress } from '../letter/bulk-action.ts'
import type { OpenedQueue } from './open.ts'
import type { QueueAccess } from './queue-access.ts'
import { formatCount } from './print.ts'
import { createProgressLine, type Progress } from './progress-line.ts'
import { stopOnSignal, stoppedExit } from './stop-on-signal.ts'
import { terminal } from './terminal.ts'

/** How often the progress of an action is read. */
const everyMs = 100
/** The same through a server, which limits requests. */
const everyRequestMs = 1000

/** What to wait for: until all letters were acted on, or until their outcomes are known too. */
export type Until = 'acted' | 'finished'

/**
 * Runs an action in this process, with other workers of the store, and shows its progress. A signal
 * pauses the action and prints how to resume it. Resolves with the action as it then is.
 */
export async function followAction(
  { dlq, letters, clock }: OpenedQueue,
  start: () => Promise<BulkAction>,
  until: Until,
): Promise<BulkAction> {
  const line = createProgressLine(terminal.stderr, clock)
  const { signal, end } = stopOnSignal()
  try {
    dlq.start()
    let action = await start()
    while (isUnderway(action, until)) {
      if (signal.aborted) return await pauseAction(dlq, action)
      line.show(toProgress(action, until))
      await sleep(clock, letters.isLocal ? everyMs : everyRequestMs, signal)
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

async function pauseAction(dlq: QueueAccess, { id }: BulkAction): Promise<BulkAction> {
  const paused = await dlq.pause(id)
  terminal.stderr.write(
    `Paused after ${formatCount(paused.count - paused.progress.pending, 'letter')}. Continue with: redrive bulk resume ${id}\n`,
  )
  terminal.exitCode = stoppedExit
  return paused
}

/** Letters whose outcome is known, or that were acted on. */
function doneOf(progress: BulkProgress, until: Until): number {
  const all = Object.values(progress).reduce((sum, count) => sum + count, 0)
  const { pending, waiting } = progress
  return until === 'finished' ? all - pending - waiting : all - pending
}

function toProgress({ action, count, progress }: BulkAction, until: Until): Progress {
  const { failed } = progress
  const note = failed > 0 ? { note: `${failed.toLocaleString('en')} failed` } : {}
  return { label: action, done: doneOf(progress, until), total: count, ...note }
}

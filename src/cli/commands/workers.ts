import type { Command } from 'commander'
import { toMs } from '../../letter/time.ts'
import type { LiveWorker } from '../../redelivery/live-workers.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import { escapeLine, formatRelativeTime, formatTable, lineWidth, toJson } from '../print.ts'
import { terminal } from '../terminal.ts'

type Worker = LiveWorker & { paused: string[] }

const examples = `
Examples:
  redrive workers
  redrive workers --json | jq 'select(.kind == "server") | .host'

Lists servers, workers and other programs that use the store now. A process
that has died is listed for up to a minute.`

export function addWorkers(program: Command): void {
  program
    .command('workers')
    .description('list the processes that use the store, and their queues')
    .addHelpText('after', examples)
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const workers = await dlq.workers()
        if (options.json) for (const one of workers) terminal.stdout.write(`${toJson(one)}\n`)
        else terminal.stdout.write(formatWorkers(workers, clock.now()))
      })
    })
}

function formatWorkers(workers: readonly Worker[], nowMs: number): string {
  if (workers.length === 0) return 'No process uses the store now.\n'
  const lines = formatTable<Worker>(
    [
      { title: 'PROCESS', cell: ({ id }) => escapeLine(id), minWidth: 16 },
      { title: 'KIND', cell: ({ kind = '' }) => kind },
      { title: 'RUNS', cell: ({ running, slots }) => formatRuns(running, slots), alignRight: true },
      {
        title: 'STARTED',
        cell: ({ startedAt }) => (startedAt === undefined ? '' : relative(startedAt, nowMs)),
        optional: true,
      },
      { title: 'SEEN', cell: ({ seenAt }) => relative(seenAt, nowMs) },
      { title: 'QUEUES', cell: formatQueues, minWidth: 12 },
      {
        title: 'HELD BACK',
        cell: formatHeldBack,
        style: (worker) => (formatHeldBack(worker) === '' ? undefined : 'yellow'),
        minWidth: 10,
      },
    ],
    workers,
    lineWidth(),
  )
  return `${lines.join('\n')}\n`
}

function relative(at: string, nowMs: number): string {
  // The clock of the process may be ahead of ours.
  return formatRelativeTime(Math.min(toMs(at), nowMs), nowMs)
}

function formatRuns(running = 0, slots = 0): string {
  return slots === 0 ? '' : `${running}/${slots}`
}

function formatQueues({ queues }: Worker): string {
  return queues.length === 0 ? '' : queues.map(escapeLine).join(', ')
}

/** The queues and dependencies that the process does not run at full speed. */
function formatHeldBack({ paused, limiters = [] }: Worker): string {
  const open = limiters.filter(({ state }) => state !== 'closed')
  return [
    ...open.map(({ name, state }) => `${escapeLine(name)} breaker ${state}`),
    ...paused.map((queue) => `${escapeLine(queue)} paused`),
  ].join(', ')
}

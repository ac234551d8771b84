import type { Command } from 'commander'
import type { QueueSummary } from '../../admin/queue-list.ts'
import type { State } from '../../letter/letter.ts'
import { maxLimit } from '../../letter/query.ts'
import type { PausedQueue } from '../../letter/paused-queue.ts'
import { toMs } from '../../letter/time.ts'
import { stateStyle } from '../letter-format.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import { readPages } from '../pages.ts'
import { escapeLine, formatRelativeTime, printEither, printRows, type Column } from '../print.ts'
import { userName } from '../user-name.ts'

interface QueueCommandOptions extends GlobalOptions {
  by?: string
  reason: string
}

const examples = `
Examples:
  redrive queue list
  redrive queue pause charge-card --reason "the gateway is down"
  redrive queue paused
  redrive queue resume charge-card

Letters of a paused queue are stored, but no worker runs them.`

export function addQueue(program: Command): void {
  const queue = program
    .command('queue')
    .description('list, pause and resume queues')
    .addHelpText('after', examples)
  queue
    .command('list')
    .description('list queues with their counts')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const queues: QueueSummary[] = []
        for await (const page of readPages((from) => dlq.queues({ limit: maxLimit, ...from })))
          queues.push(...page)
        printRows(options, queues, queueColumns(clock.now()), 'No queues.')
      })
    })
  queue
    .command('pause')
    .argument('<queue>', 'name of the queue')
    .description('let no worker run letters of a queue')
    .requiredOption('--reason <text>', 'why')
    .option('--by <name>', 'your name')
    .action((name: string, _, self: Command) => {
      const options = self.optsWithGlobals<QueueCommandOptions>()
      return withQueue(options, async ({ dlq }) => {
        const paused = await dlq.pauseQueue(name, options.by ?? userName(), options.reason)
        printEither(options, paused, `${escapeLine(name)} is paused.\n`)
      })
    })
  queue
    .command('resume')
    .argument('<queue>', 'name of the queue')
    .description('let workers run letters of a paused queue again')
    .option('--by <name>', 'your name')
    .action((name: string, _, self: Command) => {
      const options = self.optsWithGlobals<QueueCommandOptions>()
      return withQueue(options, async ({ dlq }) => {
        const wasPaused = await dlq.resumeQueue(name, options.by ?? userName())
        const text = wasPaused ? 'runs again' : 'was not paused'
        printEither(options, { queue: name, wasPaused }, `${escapeLine(name)} ${text}.\n`)
      })
    })
  queue
    .command('paused')
    .description('list paused queues')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const paused = await dlq.pausedQueues()
        printRows(options, paused, pausedColumns(clock.now()), 'No queue is paused.')
      })
    })
}

function queueColumns(nowMs: number): Column<QueueSummary>[] {
  const count = (state: State): Column<QueueSummary> => ({
    title: state.toUpperCase(),
    cell: ({ states: counts }) => counts[state].toLocaleString('en'),
    style: ({ states: counts }) => (counts[state] > 0 ? stateStyle[state] : 'dim'),
    alignRight: true,
  })
  return [
    { title: 'QUEUE', cell: ({ queue }) => escapeLine(queue), minWidth: 8 },
    ...(['pending', 'exhausted', 'parked', 'resolved'] as const).map(count),
    {
      title: 'OLDEST',
      cell: ({ oldest }) => (oldest ? formatRelativeTime(toMs(oldest.at), nowMs) : ''),
      alignRight: true,
      optional: true,
    },
    {
      title: 'PAUSED BY',
      cell: ({ paused }) => escapeLine(paused?.by ?? ''),
      style: ({ paused }) => (paused ? 'yellow' : undefined),
      minWidth: 9,
    },
  ]
}

function pausedColumns(nowMs: number): Column<PausedQueue>[] {
  return [
    { title: 'QUEUE', cell: ({ queue }) => escapeLine(queue), minWidth: 10 },
    { title: 'SINCE', cell: ({ at }) => formatRelativeTime(toMs(at), nowMs) },
    { title: 'BY', cell: ({ by }) => escapeLine(by), minWidth: 4 },
    { title: 'REASON', cell: ({ reason }) => escapeLine(reason), minWidth: 10 },
  ]
}

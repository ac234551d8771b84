import type { Command } from 'commander'
import type { PausedQueue } from '../../letter/paused-queue.ts'
import { toMs } from '../../letter/time.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import {
  escapeLine,
  formatRelativeTime,
  formatTable,
  lineWidth,
  printEither,
  toJson,
} from '../print.ts'
import { userName } from '../user-name.ts'

interface QueueCommandOptions extends GlobalOptions {
  by?: string
  reason: string
}

const examples = `
Examples:
  redrive queue pause charge-card --reason "the gateway is down"
  redrive queue paused
  redrive queue resume charge-card

Letters of a paused queue are stored, but no worker runs them.`

export function addQueue(program: Command): void {
  const queue = program
    .command('queue')
    .description('pause and resume queues')
    .addHelpText('after', examples)
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
        if (options.json) for (const one of paused) process.stdout.write(`${toJson(one)}\n`)
        else process.stdout.write(formatPaused(paused, clock.now()))
      })
    })
}

function formatPaused(paused: readonly PausedQueue[], nowMs: number): string {
  if (paused.length === 0) return 'No queue is paused.\n'
  const lines = formatTable<PausedQueue>(
    [
      { title: 'QUEUE', cell: ({ queue }) => escapeLine(queue), minWidth: 10 },
      { title: 'SINCE', cell: ({ at }) => formatRelativeTime(toMs(at), nowMs) },
      { title: 'BY', cell: ({ by }) => escapeLine(by), minWidth: 4 },
      { title: 'REASON', cell: ({ reason }) => escapeLine(reason), minWidth: 10 },
    ],
    paused,
    lineWidth(),
  )
  return `${lines.join('\n')}\n`
}

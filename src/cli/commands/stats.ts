import type { Command } from 'commander'
import { sleep } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { states, type State } from '../../letter/letter.ts'
import type { Lifetime } from '../../admin/statistics.ts'
import { withQueue, type GlobalOptions, type OpenedQueue } from '../open.ts'
import { toJson, escapeLine, lineWidth, paint, formatTable } from '../print.ts'
import type { QueueCounts } from '../queue-access.ts'
import { openScreen } from '../screen.ts'
import { stateStyle } from '../letter-format.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive stats
  redrive stats --watch 5          every 5 seconds, until Ctrl-C
  redrive stats --json | jq .states.parked`

interface StatsOptions extends GlobalOptions {
  watch?: string | true
}

export function addStats(program: Command): void {
  program
    .command('stats')
    .description('count letters by queue and state, and all actions so far')
    .option('-w, --watch [seconds]', 'repeat; default: every 2 seconds')
    .addHelpText('after', examples)
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<StatsOptions>()
      return withQueue(options, (opened) => printStats(opened, options))
    })
}

async function printStats(opened: OpenedQueue, options: StatsOptions): Promise<void> {
  if (options.watch === undefined)
    return void terminal.stdout.write(`${await formatReport(opened, options)}\n`)
  const seconds = options.watch === true ? 2 : Number(options.watch)
  if (!(seconds >= 0.2 && seconds <= 86_400))
    throw new RedriveError(
      'INVALID_INPUT',
      `--watch must be a number of seconds from 0.2 to 86400, got "${String(options.watch)}"`,
    )
  const screen = terminal.stdout.isTTY && !options.json ? openScreen(terminal.stdout) : undefined
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    terminal.once(signal, () => stopping.abort())
  try {
    while (!stopping.signal.aborted) {
      const text = await formatReport(opened, options)
      if (screen)
        screen.draw([...text.split('\n'), '', paint('dim', `Every ${seconds} s. Ctrl-C stops.`)])
      else terminal.stdout.write(`${text}\n`)
      await sleep(opened.clock, seconds * 1000, stopping.signal)
    }
  } finally {
    // Restore the terminal before an error is printed: the error would disappear with the screen.
    screen?.close()
  }
}

async function formatReport({ letters, dlq }: OpenedQueue, options: StatsOptions): Promise<string> {
  const [statistics, queues] = await Promise.all([dlq.stats(), letters.countQueues()])
  if (options.json) {
    const {
      processor: _processor,
      maxItems: _maxItems,
      utilisation: _utilisation,
      ...visible
    } = statistics
    return toJson({
      ...visible,
      queues: Object.fromEntries(queues.map(({ queue, ...counts }) => [queue, counts])),
    })
  }
  if (queues.length === 0) return ['No letters.', ...formatLifetime(statistics.lifetime)].join('\n')
  return [...formatQueueTable(queues), '', ...formatLifetime(statistics.lifetime)].join('\n')
}

/** One row per queue, and the sum. */
export function formatQueueTable(queues: readonly QueueCounts[]): string[] {
  const sum = (counts: QueueCounts): number => states.reduce((all, state) => all + counts[state], 0)
  const total = Object.fromEntries(
    states.map((state) => [state, queues.reduce((all, counts) => all + counts[state], 0)]),
  )
  const rows = [...queues, { queue: 'all', ...(total as Record<State, number>) }]
  const columns = [
    { title: 'QUEUE', cell: ({ queue }: QueueCounts) => escapeLine(queue), minWidth: 8 },
    ...states.map((state) => ({
      title: state.toUpperCase(),
      cell: (counts: QueueCounts) => counts[state].toLocaleString('en'),
      style: (counts: QueueCounts) => (counts[state] > 0 ? stateStyle[state] : ('dim' as const)),
      alignRight: true,
      optional: state === 'retrying' || state === 'archived',
    })),
    {
      title: 'ALL',
      cell: (counts: QueueCounts) => sum(counts).toLocaleString('en'),
      alignRight: true,
    },
  ]
  return formatTable(columns, rows, lineWidth())
}

function formatLifetime(lifetime: Lifetime): string[] {
  const { captured, occurrences, retried, resolved, rescheduled, exhausted, parked, ...rest } =
    lifetime
  const joinCounts = (counts: Record<string, number>): string =>
    Object.entries(counts)
      .map(
        ([name, count]) =>
          `${count.toLocaleString('en')} ${name.replace('manuallyRetried', 'retried by hand')}`,
      )
      .join(', ')
  const nonZero = Object.fromEntries(Object.entries(rest).filter(([, count]) => count > 0))
  return [
    'Since the store was created:',
    `  ${joinCounts({ captured, ...(occurrences > 0 ? { 'captured again': occurrences } : {}), retried })}`,
    `  ${joinCounts({ resolved, rescheduled, exhausted, parked })}`,
    ...(Object.keys(nonZero).length > 0 ? [`  ${joinCounts(nonZero)}`] : []),
  ]
}

import type { Command } from 'commander'
import { sleep } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { states, type State } from '../../letter/letter.ts'
import type { Lifetime } from '../../admin/statistics.ts'
import type { Store } from '../../store.ts'
import { withQueue, type GlobalOptions, type OpenedQueue } from '../open.ts'
import { json, line, lineWidth, paint, table } from '../print.ts'
import { openScreen } from '../screen.ts'
import { stateStyle } from '../standing.ts'

const examples = `
Examples:
  redrive stats
  redrive stats --watch 5          again every 5 seconds, until Ctrl-C
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
      return withQueue(options, (opened) => stats(opened, options))
    })
}

async function stats(opened: OpenedQueue, options: StatsOptions): Promise<void> {
  if (options.watch === undefined)
    return void process.stdout.write(`${await report(opened, options)}\n`)
  const seconds = options.watch === true ? 2 : Number(options.watch)
  if (!(seconds >= 0.2 && seconds <= 86_400))
    throw new RedriveError(
      'INVALID_INPUT',
      `--watch must be a number of seconds from 0.2 to 86400, got "${String(options.watch)}"`,
    )
  const screen = process.stdout.isTTY && !options.json ? openScreen(process.stdout) : undefined
  const ended = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => ended.abort())
  try {
    while (!ended.signal.aborted) {
      const text = await report(opened, options)
      if (screen)
        screen.draw([...text.split('\n'), '', paint('dim', `Every ${seconds} s. Ctrl-C stops.`)])
      else process.stdout.write(`${text}\n`)
      await sleep(opened.clock, seconds * 1000, ended.signal)
    }
  } finally {
    // Restored before an error is printed, which would vanish with the screen.
    screen?.close()
  }
}

async function report({ store, dlq }: OpenedQueue, options: StatsOptions): Promise<string> {
  const [statistics, queues] = await Promise.all([dlq.stats(), queueCounts(store)])
  if (options.json) {
    const {
      processor: _processor,
      maxItems: _maxItems,
      utilisation: _utilisation,
      ...told
    } = statistics
    return json({
      ...told,
      queues: Object.fromEntries(queues.map(({ queue, ...counts }) => [queue, counts])),
    })
  }
  if (queues.length === 0) return ['No letters.', ...lifetimeLines(statistics.lifetime)].join('\n')
  return [...queueTable(queues), '', ...lifetimeLines(statistics.lifetime)].join('\n')
}

export type QueueCounts = Record<State, number> & { queue: string }

/** Letters by queue and state, from maintained counts, by name. */
export async function queueCounts(store: Store): Promise<QueueCounts[]> {
  const tallies = await Promise.all(states.map((state) => store.tally('queue', { state })))
  const names = [...new Set(tallies.flatMap((tally) => [...tally.keys()]))].sort()
  return names.map((queue) => {
    const counts = states.map((state, index) => [state, tallies[index]!.get(queue) ?? 0])
    return { queue, ...(Object.fromEntries(counts) as Record<State, number>) }
  })
}

/** One row per queue, and the sum. */
export function queueTable(queues: readonly QueueCounts[]): string[] {
  const sum = (counts: QueueCounts): number => states.reduce((all, state) => all + counts[state], 0)
  const total = Object.fromEntries(
    states.map((state) => [state, queues.reduce((all, counts) => all + counts[state], 0)]),
  )
  const rows = [...queues, { queue: 'all', ...(total as Record<State, number>) }]
  const columns = [
    { title: 'QUEUE', cell: ({ queue }: QueueCounts) => line(queue), least: 8 },
    ...states.map((state) => ({
      title: state.toUpperCase(),
      cell: (counts: QueueCounts) => counts[state].toLocaleString('en'),
      style: (counts: QueueCounts) => (counts[state] > 0 ? stateStyle[state] : ('dim' as const)),
      right: true,
      optional: state === 'retrying' || state === 'archived',
    })),
    { title: 'ALL', cell: (counts: QueueCounts) => sum(counts).toLocaleString('en'), right: true },
  ]
  return table(columns, rows, lineWidth())
}

function lifetimeLines(lifetime: Lifetime): string[] {
  const { captured, occurrences, retried, resolved, rescheduled, exhausted, parked, ...rest } =
    lifetime
  const told = (counts: Record<string, number>): string =>
    Object.entries(counts)
      .map(
        ([name, count]) =>
          `${count.toLocaleString('en')} ${name.replace('manuallyRetried', 'retried by hand')}`,
      )
      .join(', ')
  const nonZero = Object.fromEntries(Object.entries(rest).filter(([, count]) => count > 0))
  return [
    'Since the store was created:',
    `  ${told({ captured, ...(occurrences > 0 ? { 'captured again': occurrences } : {}), retried })}`,
    `  ${told({ resolved, rescheduled, exhausted, parked })}`,
    ...(Object.keys(nonZero).length > 0 ? [`  ${told(nonZero)}`] : []),
  ]
}

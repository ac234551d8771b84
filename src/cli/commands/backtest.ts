import type { Command } from 'commander'
import type { BacktestInput } from '../../admin/backtest.ts'
import { RedriveError } from '../../errors.ts'
import type { BacktestGroup, BacktestReport, BacktestSide } from '../../policy/backtest.ts'
import { exponential, fixed, immediate, never } from '../../policy/backoff.ts'
import { addFilterOptions, readFilter, type FilterOptions } from '../filter.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import {
  escapeLine,
  formatCount,
  formatDuration,
  formatTable,
  lineWidth,
  printEither,
} from '../print.ts'

interface BacktestOptions extends GlobalOptions, FilterOptions {
  maxRetries?: string
  backoff?: string
  read: string
}

const examples = `
Examples:
  redrive backtest --max-retries 5
  redrive backtest --backoff exponential:1000 --queue charge-card

Reads stored letters, and reports by group what another retry limit or backoff
would have done to them. No letter is changed.`

export function addBacktest(program: Command): void {
  addFilterOptions(program.command('backtest'))
    .description('report what another retry limit or backoff would have done')
    .option('--max-retries <number>', 'another retry limit')
    .option('--backoff <backoff>', 'never, immediate, fixed:MS or exponential:MS')
    .option('--read <count>', 'letters to read, the newest first', '10000')
    .addHelpText('after', examples)
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<BacktestOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const filter = readFilter(options, clock.now())
        const report = await dlq.backtest(readInput(options), filter)
        printEither(options, report, formatReport(report))
      })
    })
}

function readInput({ maxRetries, backoff, read }: BacktestOptions): BacktestInput {
  if (maxRetries === undefined && backoff === undefined)
    throw new RedriveError('INVALID_INPUT', 'backtest needs --max-retries or --backoff')
  return {
    limit: Number(read),
    ...(maxRetries === undefined ? {} : { maxRetries: Number(maxRetries) }),
    ...(backoff === undefined ? {} : { policy: readBackoff(backoff) }),
  }
}

function readBackoff(text: string): NonNullable<BacktestInput['policy']> {
  const [, kind, ms] = /^(never|immediate|fixed|exponential)(?::(\d{1,9}))?$/.exec(text) ?? []
  if (kind === 'never') return never()
  if (kind === 'immediate') return immediate()
  if (kind === 'fixed' && ms !== undefined) return fixed(Number(ms))
  if (kind === 'exponential' && ms !== undefined) return exponential({ baseMs: Number(ms) })
  throw new RedriveError(
    'INVALID_INPUT',
    `--backoff must be never, immediate, fixed:MS or exponential:MS, got "${text}"`,
  )
}

const maxGroups = 20

function formatReport(report: BacktestReport): string {
  const { letters, changed, complete, before, after, newlyParked, newlyRetried, groups } = report
  const lines = [
    `${formatCount(letters, 'letter')} read${complete ? '' : ' (more match)'}, ${changed.toLocaleString('en')} would differ.`,
    `before: ${formatSide(before)}`,
    `after:  ${formatSide(after)}`,
    `${newlyParked.toLocaleString('en')} parked at once instead of retried, ${newlyRetried.toLocaleString('en')} the other way round.`,
    ...report.problems.map((problem) => `problem: ${escapeLine(problem)}`),
    '',
    ...formatTable<BacktestGroup>(
      [
        { title: 'GROUP', cell: ({ group }) => escapeLine(group) },
        { title: 'LETTERS', cell: ({ letters: all }) => String(all), alignRight: true },
        { title: 'DIFFER', cell: ({ changed: some }) => String(some), alignRight: true },
        {
          title: 'RETRIES',
          cell: (group) => `${group.before.retries} → ${group.after.retries}`,
          alignRight: true,
        },
        { title: 'CAUSE', cell: ({ failure }) => escapeLine(failure), minWidth: 16 },
      ],
      groups.slice(0, maxGroups),
      lineWidth(),
    ),
  ]
  return `${lines.join('\n')}\n`
}

function formatSide({ retries, parked, waitMs }: BacktestSide): string {
  return `${retries.toLocaleString('en')} retries, ${formatDuration(waitMs)} of waiting, ${parked.toLocaleString('en')} parked at once`
}

import type { BulkAction, BulkProgress, BulkState, Outcome } from '../letter/bulk-action.ts'
import { toMs } from '../letter/time.ts'
import { formatDiff } from './diff-format.ts'
import {
  escapeLine,
  formatCount,
  formatRelativeTime,
  formatTable,
  lineWidth,
  paint,
  truncate,
  type Column,
  type Style,
} from './print.ts'

const bulkStateStyle: Record<BulkState, Style> = {
  planned: 'cyan',
  running: 'yellow',
  paused: 'yellow',
  stopped: 'red',
  finished: 'green',
  cancelled: 'dim',
}

export const outcomeStyle: Record<Outcome, Style> = {
  pending: 'dim',
  waiting: 'cyan',
  succeeded: 'green',
  failed: 'red',
  skipped: 'yellow',
  indeterminate: 'yellow',
}

/** "2 exhausted, 1 parked" */
export function formatCounts(counts: { [key: string]: number | undefined }): string {
  return Object.entries(counts)
    .filter(([, count]) => count !== undefined && count > 0)
    .map(([key, count]) => `${count!.toLocaleString('en')} ${escapeLine(key)}`)
    .join(', ')
}

function formatOutcomeCounts(progress: BulkProgress): string {
  return formatCounts({ ...progress })
}

/** The plan of an action, for a person who decides whether to run it. */
export function formatPlan(plan: BulkAction): string {
  const { id, expiresAt, approval } = plan
  const lines = [
    ...(approval
      ? [
          `More than ${formatCount(approval.above, 'letter')}: another person has to approve it first:`,
          `  redrive bulk approve ${id}`,
        ]
      : []),
    `Nothing was changed. Run it before ${expiresAt}:`,
    `  redrive bulk run ${id}`,
  ]
  return `${formatPlanned(plan)}${lines.join('\n')}\n`
}

/** What a planned action would do. */
export function formatPlanned(plan: BulkAction): string {
  const { action, count, states, ineligible, sample } = plan
  const lines = [
    `${action} ${formatCount(count, 'letter')} (${formatCounts(states)})`,
    ...Object.entries(ineligible.reasons).map(
      ([reason, letters]) => `  not possible for ${formatCount(letters, 'letter')}: ${reason}`,
    ),
    '',
    ...sample.slice(0, 5).map(formatSample),
    ...(count > 5 ? [paint('dim', `  … and ${formatCount(count - 5, 'more letter')}`)] : []),
    '',
    ...formatPreview(plan),
  ]
  return `${lines.join('\n')}\n`
}

/** What an edit would change in the first letter, and how many letters it cannot change. */
function formatPreview({ preview = [] }: BulkAction): string[] {
  const shown = preview.find(({ diff }) => diff !== undefined)
  const errors = preview.filter(({ error }) => error !== undefined)
  return [
    ...(shown?.diff ? [`In ${shown.id}:`, formatDiff(shown.diff)] : []),
    ...errors
      .slice(0, 3)
      .map(({ id, error = '' }) => `${id} cannot be edited: ${escapeLine(error)}`),
  ]
}

function formatSample({ id, queue, state, failure }: BulkAction['sample'][number]): string {
  return truncate(`  ${id}  ${escapeLine(queue)}  ${state}  ${escapeLine(failure)}`, lineWidth())
}

/** What an action did, in a few lines. */
export function formatDone(action: BulkAction): string {
  const { id, state, progress, stopReason, problem } = action
  return [
    `${action.action} ${paint(bulkStateStyle[state], state)}: ${formatOutcomeCounts(progress)}\n`,
    ...(stopReason === undefined ? [] : [`Stopped: ${escapeLine(stopReason)}\n`]),
    ...(problem === undefined ? [] : [`Waiting: ${escapeLine(problem)}\n`]),
    ...(progress.failed + progress.skipped + progress.indeterminate > 0
      ? [`Details: redrive bulk results ${id} --outcome failed,skipped,indeterminate\n`]
      : []),
  ].join('')
}

/** A table of actions. */
export function formatActions(actions: readonly BulkAction[], nowMs: number): string {
  const columns: Column<BulkAction>[] = [
    // Commands accept the beginning of an id.
    { title: 'ID', cell: ({ id }) => id, minWidth: 20 },
    { title: 'ACTION', cell: ({ action }) => action },
    { title: 'STATE', cell: ({ state }) => state, style: ({ state }) => bulkStateStyle[state] },
    { title: 'LETTERS', cell: ({ count }) => count.toLocaleString('en'), alignRight: true },
    {
      title: 'DONE',
      cell: ({ count, progress }) =>
        `${Math.floor((100 * (count - progress.pending - progress.waiting)) / count)} %`,
      alignRight: true,
    },
    {
      title: 'PLANNED',
      cell: ({ plannedAt }) => formatRelativeTime(toMs(plannedAt), nowMs),
      alignRight: true,
      optional: true,
    },
    { title: 'BY', cell: ({ by }) => escapeLine(by), minWidth: 4 },
  ]
  return `${formatTable(columns, actions, lineWidth()).join('\n')}\n`
}

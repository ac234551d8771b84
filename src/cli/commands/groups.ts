import { Option, type Command } from 'commander'
import { systemClock } from '../../clock/clock.ts'
import type {
  Group,
  GroupDetail,
  GroupExplanation,
  GroupQuery,
  GroupStatus,
} from '../../letter/group.ts'
import { groupStatuses } from '../../letter/group.ts'
import { toMs } from '../../letter/time.ts'
import { formatCounts } from '../bulk-format.ts'
import { collect, readFutureTime, readLimit } from '../filter.ts'
import { resolveId } from '../letter-ids.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import type { QueueAccess } from '../queue-access.ts'
import {
  escapeLine,
  formatCount,
  formatRelativeTime,
  formatTable,
  lineWidth,
  paint,
  printEither,
  toJson,
  truncate,
  type Style,
} from '../print.ts'
import { userName } from '../user-name.ts'
import { terminal } from '../terminal.ts'

const statusStyle: Record<GroupStatus, Style> = {
  open: 'yellow',
  ignored: 'dim',
  resolved: 'green',
  regressed: 'red',
}

interface GroupsOptions extends GlobalOptions {
  queue?: string[]
  status?: GroupStatus[]
  sort?: GroupQuery['sort']
  limit: string
  cursor?: string
}

export function addGroups(program: Command): void {
  program
    .command('groups')
    .description('list causes of failures with their letters')
    .option('-q, --queue <name>', 'only this queue; may be repeated', collect)
    .addOption(new Option('--status <status>', 'only this status').choices(groupStatuses))
    .addOption(
      new Option('--sort <order>', 'most letters, newest or fastest growing first').choices([
        'count',
        'lastSeen',
        'growth',
      ]),
    )
    .option('-n, --limit <count>', 'maximum number of groups', '20')
    .option('--cursor <cursor>', 'continue from this cursor')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GroupsOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const { queue, status, sort, cursor } = options
        const page = await dlq.groups({
          limit: readLimit(options.limit),
          ...(queue ? { queue } : {}),
          ...(status ? { status } : {}),
          ...(sort ? { sort } : {}),
          ...(cursor === undefined ? {} : { cursor }),
        })
        if (options.json)
          for (const group of page.items) terminal.stdout.write(`${toJson(group)}\n`)
        else terminal.stdout.write(formatGroups(page.items, clock.now()))
        if (page.cursor !== undefined) terminal.stderr.write(`--cursor ${page.cursor}\n`)
      })
    })
  addGroup(program)
}

function formatGroups(groups: readonly Group[], nowMs: number): string {
  if (groups.length === 0) return 'No groups.\n'
  const lines = formatTable<Group>(
    [
      { title: 'FINGERPRINT', cell: ({ fingerprint }) => escapeLine(fingerprint) },
      { title: 'LETTERS', cell: ({ count }) => count.toLocaleString('en'), alignRight: true },
      { title: 'STATUS', cell: ({ status }) => status, style: ({ status }) => statusStyle[status] },
      {
        title: 'LAST SEEN',
        cell: ({ lastSeen }) => formatRelativeTime(toMs(lastSeen), nowMs),
        alignRight: true,
        optional: true,
      },
      { title: 'QUEUE', cell: ({ queue }) => escapeLine(queue), minWidth: 10, optional: true },
      { title: 'CAUSE', cell: ({ title }) => escapeLine(title), minWidth: 16 },
    ],
    groups,
    lineWidth(),
  )
  return `${lines.join('\n')}\n`
}

interface GroupOptions extends GlobalOptions {
  by?: string
  inVersion?: string
  until?: string
  count?: string
  rate?: string
}

type GroupChange = (
  dlq: QueueAccess,
  fingerprint: string,
  by: string,
  options: GroupOptions,
  more: string[],
) => Promise<GroupDetail>

const examples = `
Examples:
  redrive group show v1-a77e7f3bef6b9a28
  redrive group resolve v1-a77e7f3bef6b9a28 --in-version 2.4.0
  redrive group ignore v1-a77e7f3bef6b9a28 --until 3d
  redrive retry --group v1-a77e7f3bef6b9a28   act on its letters`

function addGroup(program: Command): void {
  const group = program
    .command('group')
    .description('show one cause, and what people did about it')
    .addHelpText('after', examples)
  group
    .command('show')
    .argument('<fingerprint>')
    .description('print a group with its trend and history')
    .action((fingerprint: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const found = await dlq.group(fingerprint)
        if (!found) return void terminal.stdout.write('No such group.\n')
        printEither(options, found, formatGroup(found, clock.now()))
      })
    })
  group
    .command('explain')
    .argument('<id>', 'id, id prefix or source id of a letter')
    .description('explain why a letter is in its group')
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq, letters }) => {
        const explanation = await dlq.explainGroup(await resolveId(letters, given))
        printEither(options, explanation, formatExplanation(explanation))
      })
    })
  change(group, 'resolve', 'the cause is fixed', (dlq, fingerprint, by, { inVersion }) =>
    dlq.resolveGroup(fingerprint, by, inVersion === undefined ? {} : { inVersion }),
  ).option('--in-version <version>', 'the version of the application with the fix')
  change(
    group,
    'ignore',
    'hide the group until a limit is passed',
    (dlq, fingerprint, by, options) => dlq.ignoreGroup(fingerprint, by, readIgnore(options)),
  )
    .option('--until <when>', 'until a time: 15m, 2h, 3d, or an ISO timestamp')
    .option('--count <number>', 'until so many further failures')
    .option('--rate <number>', 'until so many failures in an hour')
  change(group, 'reopen', 'the group needs attention again', (dlq, fingerprint, by) =>
    dlq.reopenGroup(fingerprint, by),
  )
  change(group, 'assign', 'set who takes care of it; nobody without a name', (...given) => {
    const [dlq, fingerprint, by, , more] = given
    return dlq.assignGroup(fingerprint, by, more[0] ?? null)
  }).argument('[name]')
  change(group, 'note', 'add a note', (dlq, fingerprint, by, _, more) =>
    dlq.noteGroup(fingerprint, by, more[0] ?? ''),
  ).argument('<text>')
  change(group, 'merge', 'merge other groups into this one', (dlq, fingerprint, by, _, more) =>
    dlq.mergeGroups(fingerprint, more, by),
  ).argument('<others...>')
  change(group, 'split', 'undo the merge of a fingerprint', (dlq, fingerprint, by) =>
    dlq.splitGroup(fingerprint, by),
  )
}

function formatExplanation(explanation: GroupExplanation): string {
  const { category, rule, group, computed, fingerprint, parts, frames, masked } = explanation
  const lines = [
    `category ${category}, by the rule ${escapeLine(rule)}`,
    `group ${escapeLine(group)}`,
    ...(group === fingerprint ? [] : [`merged from ${escapeLine(fingerprint)}`]),
    ...(computed === fingerprint ? [] : [`by the current rules: ${escapeLine(computed)}`]),
    ...parts.map(({ part, value }) => `${escapeLine(part)}: ${escapeLine(value)}`),
    ...frames.map(({ frame, used }) =>
      paint(used ? undefined : 'dim', `${used ? 'frame' : 'ignored frame'}: ${escapeLine(frame)}`),
    ),
    ...(masked.length > 0 ? [`masked words: ${masked.map(escapeLine).join(', ')}`] : []),
  ]
  return `${lines.map((line) => truncate(line, lineWidth())).join('\n')}\n`
}

function change(group: Command, name: string, description: string, act: GroupChange): Command {
  const command = group.command(name).argument('<fingerprint>').description(description)
  return command.option('--by <name>', 'your name').action((fingerprint: string) => {
    const options = command.optsWithGlobals<GroupOptions>()
    const more = command.args.slice(1)
    return withQueue(options, async ({ dlq }) => {
      const found = await act(dlq, fingerprint, options.by ?? userName(), options, more)
      printEither(options, found, `${escapeLine(found.fingerprint)} is ${found.status}.\n`)
    })
  })
}

function readIgnore({ until, count, rate }: GroupOptions): {
  until?: string
  count?: number
  rate?: number
} {
  return {
    ...(until === undefined ? {} : { until: readFutureTime('--until', until, systemClock.now()) }),
    ...(count === undefined ? {} : { count: Number(count) }),
    ...(rate === undefined ? {} : { rate: Number(rate) }),
  }
}

function formatGroup(group: GroupDetail, nowMs: number): string {
  const when = (at: string): string => formatRelativeTime(toMs(at), nowMs)
  const { title, fingerprint, status, assignee, count, states, notes, history } = group
  const lastDay = group.trend.hours.slice(-24).reduce((sum, point) => sum + point.count, 0)
  const facets = (['queues', 'tenants', 'hosts', 'versions'] as const).flatMap((kind) => {
    const counts = group[kind].map(({ name, count: failures }) => [name, failures] as const)
    return counts.length === 0 ? [] : [`${kind}: ${formatCounts(Object.fromEntries(counts))}`]
  })
  const lines = [
    paint('bold', escapeLine(title)),
    `${escapeLine(fingerprint)}  ${paint(statusStyle[status], status)}${assignee === undefined ? '' : `  assigned to ${escapeLine(assignee)}`}`,
    `${formatCount(count, 'letter')}: ${formatCounts(states)}`,
    `first seen ${when(group.firstSeen)}, last seen ${when(group.lastSeen)}, ${formatCount(lastDay, 'failure')} in 24 hours`,
    ...facets,
    ...(group.merged ? [`merged: ${group.merged.map(escapeLine).join(', ')}`] : []),
    `sample: redrive show ${group.sampleId}`,
    ...notes.map(
      ({ at, by, text }) => `note of ${escapeLine(by)}, ${when(at)}: ${escapeLine(text)}`,
    ),
    ...history.map(({ at, by, change: what, note }) => {
      const details = note === undefined ? '' : `: ${escapeLine(note)}`
      return paint('dim', `${what} by ${escapeLine(by)}, ${when(at)}${details}`)
    }),
  ]
  return `${lines.join('\n')}\n`
}

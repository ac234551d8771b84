import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import type { LetterSummary } from '../../letter/letter.ts'
import { maxLimit, orders, type LetterFilter, type LetterQuery } from '../../letter/query.ts'
import { addFilterOptions, readFilter, readLimit, type FilterOptions } from '../filter.ts'
import { shortIds } from '../letter-ids.ts'
import { withLetters, type GlobalOptions, type OpenedLetters } from '../open.ts'
import type { LetterReader } from '../queue-access.ts'
import {
  formatCount,
  toJson,
  escapeLine,
  lineWidth,
  paint,
  formatTable,
  type Column,
} from '../print.ts'
import { formatFailureLine, stateStyle, formatDue } from '../letter-format.ts'
import { terminal } from '../terminal.ts'

interface ListOptions extends GlobalOptions, FilterOptions {
  order: string
  limit: string
  all?: boolean
  cursor?: string
}

const examples = `
Examples:
  redrive list --state parked,exhausted       letters that need a person
  redrive list --queue charge-card --since 2h
  redrive list --order due                    what runs next
  redrive list --source-id wf_abc123          letters of one workflow
  redrive list --metadata customer=acme
  redrive list --json | jq -r .id

With --json each line is one letter, without its payload and history. If there
are more letters, standard error gets the --cursor of the next page.`

export function addList(program: Command): void {
  const command = program
    .command('list')
    .description('list letters, newest first, without archived ones')
  addFilterOptions(command)
    .option('-o, --order <order>', orders.join(', '), 'newest')
    .option('-n, --limit <count>', 'maximum number of letters', '20')
    .option('-a, --all', 'all matching letters')
    .option('--cursor <cursor>', 'continue from this cursor')
    .addHelpText('after', examples)
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<ListOptions>()
      return withLetters(options, (opened) => listLetters(opened, options))
    })
}

async function listLetters(opened: OpenedLetters, options: ListOptions): Promise<void> {
  const filter = readFilter(options, opened.clock.now())
  const order = orders.find((known) => known === options.order)
  if (!order)
    throw new RedriveError(
      'INVALID_INPUT',
      `--order must be one of ${orders.join(', ')}, got "${options.order}"`,
    )
  const limit = options.all ? maxLimit : readLimit(options.limit)
  const query: LetterQuery = {
    ...filter,
    order,
    limit,
    ...(options.cursor === undefined ? {} : { cursor: options.cursor }),
  }
  let printed = 0
  for (;;) {
    const { items, cursor } = await opened.letters.find(query)
    if (options.json)
      for (const letter of items) terminal.stdout.write(`${toJson(putKeysFirst(letter))}\n`)
    else if (items.length > 0) await printTable(opened, items, printed === 0)
    printed += items.length
    if (options.all && cursor !== undefined) query.cursor = cursor
    else
      return options.json
        ? printCursor(cursor)
        : printSummary(opened.letters, filter, printed, cursor)
  }
}

async function printTable(
  { letters: reader, clock }: OpenedLetters,
  letters: LetterSummary[],
  first: boolean,
): Promise<void> {
  const ids = letters.map(({ id }) => id)
  const shorten = await shortIds(reader, ids)
  const lines = formatTable(letterColumns(shorten, clock.now()), letters, lineWidth())
  terminal.stdout.write(`${(first ? lines : lines.slice(1)).join('\n')}\n`)
}

/** The columns of a list of letters. */
export function letterColumns(
  shorten: (id: string) => string,
  nowMs: number,
): Column<LetterSummary>[] {
  return [
    { title: 'ID', cell: ({ id }) => shorten(id) },
    { title: 'QUEUE', cell: ({ queue }) => escapeLine(queue), minWidth: 10 },
    { title: 'STATE', cell: ({ state }) => state, style: ({ state }) => stateStyle[state] },
    { title: 'CATEGORY', cell: ({ category }) => category, optional: true },
    {
      title: 'TRY',
      cell: ({ retries, maxRetries }) => `${retries}/${maxRetries}`,
      alignRight: true,
      optional: true,
    },
    { title: 'DUE', cell: (letter) => formatDue(letter, nowMs), alignRight: true, optional: true },
    {
      title: 'ERROR',
      cell: formatFailureLine,
      style: ({ corrupt }) => (corrupt === undefined ? undefined : 'red'),
      minWidth: 16,
    },
  ]
}

/** The most important keys come first. */
function putKeysFirst(letter: LetterSummary): object {
  const { id, queue, state, ...rest } = letter
  return { id, queue, state, ...rest }
}

function printCursor(cursor: string | undefined): void {
  if (cursor !== undefined) terminal.stderr.write(`--cursor ${cursor}\n`)
}

async function printSummary(
  reader: LetterReader,
  filter: LetterFilter,
  printed: number,
  cursor: string | undefined,
): Promise<void> {
  const filtered = Object.keys(filter).length > 0
  if (printed === 0)
    return void terminal.stdout.write(filtered ? 'No letter matches.\n' : 'No letters.\n')
  if (cursor === undefined)
    return void terminal.stdout.write(paint('dim', `${formatCount(printed, 'letter')}.`) + '\n')
  const count = await reader.count(filter)
  const all = count === undefined ? '' : ` of ${count.toLocaleString('en')}`
  terminal.stdout.write(
    paint('dim', `${printed}${all} letters. More with --limit or --all.`) + '\n',
  )
}

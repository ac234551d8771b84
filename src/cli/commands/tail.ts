import { once } from 'node:events'
import type { Command } from 'commander'
import { sleep } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { LetterSummary } from '../../letter/letter.ts'
import { matches, maxLimit, type LetterFilter } from '../../letter/query.ts'
import { addFilterOptions, readFilter, type FilterOptions } from '../filter.ts'
import { formatFailureLine, stateStyle } from '../letter-format.ts'
import { withLetters, type GlobalOptions, type OpenedLetters } from '../open.ts'
import { escapeLine, lineWidth, paint, toJson, truncate, widthOf } from '../print.ts'
import { findServer, type Server } from '../remote/server.ts'
import { stopOnSignal } from '../stop-on-signal.ts'
import { terminal } from '../terminal.ts'

/** How often new letters of a store are read. */
const pollMs = 1000

interface TailOptions extends GlobalOptions, FilterOptions {
  lines: string
}

const examples = `
Examples:
  redrive tail                          the last 10 letters, then new ones
  redrive tail --queue charge-card -n 0
  redrive tail --jsonl | jq -r .failure.message

Prints letters as they are stored, until Ctrl-C. A server sends them at once; a
store is read every second.`

export function addTail(program: Command): void {
  addFilterOptions(program.command('tail'))
    .description('print new letters as they come')
    .option('-n, --lines <count>', 'number of stored letters to begin with', '10')
    .addHelpText('after', examples)
    .action(async (_, self: Command) => {
      const options = self.optsWithGlobals<TailOptions>()
      const count = readLines(options.lines)
      const { signal, end } = stopOnSignal()
      const server = await findServer(options)
      try {
        await withLetters(options, async (opened) => {
          const filter = readFilter(options, opened.clock.now())
          const known = new Set<string>()
          const batches = server
            ? watchServer(server, filter, signal)
            : pollStore(opened, filter, signal)
          // The first batch is empty: from now on, no letter is missed.
          await batches.next()
          const stored = await readNewest(opened, filter, count)
          await printLetters(stored, known, options)
          for await (const letters of batches) await printLetters(letters, known, options)
        })
      } finally {
        end()
      }
    })
}

function readLines(text: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (count <= maxLimit) return count
  throw new RedriveError(
    'INVALID_INPUT',
    `--lines must be an integer from 0 to ${maxLimit}, got "${text}"`,
  )
}

/** The newest letters, the oldest of them first. */
async function readNewest(
  { letters }: OpenedLetters,
  filter: LetterFilter,
  limit: number,
): Promise<LetterSummary[]> {
  if (limit === 0) return []
  return (await letters.find({ ...filter, order: 'newest', limit })).items.toReversed()
}

/** Batches of new letters of a store. The first one is empty. */
async function* pollStore(
  { letters, clock }: OpenedLetters,
  filter: LetterFilter,
  signal: AbortSignal,
): AsyncGenerator<LetterSummary[], void> {
  const { NewLetters } = await import('../../server/feed/new-letters.ts')
  const reader = new NewLetters({ find: (query) => letters.find(query), filter, clock })
  while (!signal.aborted) {
    yield await reader.read()
    await sleep(clock, pollMs, signal)
  }
}

/** Batches of new letters of a server. The first one is empty. */
async function* watchServer(
  { client }: Server,
  filter: LetterFilter,
  signal: AbortSignal,
): AsyncGenerator<LetterSummary[], void> {
  const { queue } = filter
  for await (const event of client.watchEvents(queue === undefined ? {} : { queue }, { signal })) {
    if (event.type === 'ready') yield []
    if (event.type === 'reset') terminal.stderr.write('Letters were missed: see redrive list.\n')
    if (event.type !== 'letters') continue
    yield (event.items as LetterSummary[]).filter((letter) => matches(letter, filter))
    if (event.more !== undefined)
      terminal.stderr.write(`${event.more} more letters came at once: see redrive list.\n`)
  }
}

/** Prints the letters that were not printed yet. */
async function printLetters(
  letters: readonly LetterSummary[],
  known: Set<string>,
  { json }: TailOptions,
): Promise<void> {
  for (const letter of letters) {
    if (known.has(letter.id)) continue
    remember(known, letter.id)
    const line = json ? toJson(letter) : formatLine(letter)
    if (!terminal.stdout.write(`${line}\n`)) await once(terminal.stdout, 'drain')
  }
}

/** Letters come twice only at the beginning and after a reconnect. */
const maxKnown = 10_000

function remember(known: Set<string>, id: string): void {
  known.add(id)
  if (known.size > maxKnown) known.delete(known.values().next().value!)
}

/** Long enough to tell letters of the same millisecond apart in most cases. */
const idLength = 18

/** A letter in one line that fits the terminal. */
function formatLine(letter: LetterSummary): string {
  const { id, queue, state, deadLetteredAt } = letter
  const start = `${deadLetteredAt.slice(11, 19)} ${id.slice(0, idLength)} ${truncate(escapeLine(queue), 20)}`
  const error = truncate(
    formatFailureLine(letter),
    lineWidth() - widthOf(start) - widthOf(state) - 2,
  )
  return `${start} ${paint(stateStyle[state], state)} ${error}`
}

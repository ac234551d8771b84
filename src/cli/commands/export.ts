import { once } from 'node:events'
import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { checkOneOf } from '../../check/keys.ts'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { states } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { ExportOptions, ExportPosition } from '../../transfer/lines/export.ts'
import { PartFile, readChunks, replaceFile, resolveTarget } from '../files.ts'
import { addFilterOptions, readFilter, type FilterOptions } from '../filter.ts'
import { withStore, type GlobalOptions, type Opened } from '../open.ts'
import { readPages } from '../pages.ts'
import { formatCount, toJson } from '../print.ts'
import { findServer, type Server } from '../remote/server.ts'
import { createProgressLine } from '../progress-line.ts'
import { stoppedExit, stopOnSignal } from '../stop-on-signal.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive export letters.jsonl
  redrive export letters.jsonl --resume        continue after an interruption
  redrive export --queue charge-card > charge-card.jsonl
  redrive export --after 01995c3a-0000-7000-8000-000000000000 > rest.jsonl
  redrive export operations.json --format operations

Writes every matching letter with all its data as one line of JSON, oldest
first. Without --state, letters of all states, archived ones included. The last
line has the number of letters and a checksum; redrive import checks both.
An existing file is replaced only when the new one is complete; until then the
new one is FILE.part. Only its owner can read it.
--format operations writes a JSON array of operations instead, without
archived letters unless --state names them.
Exits with 1 if letters are damaged in the store. With --json and a file it
prints {"file", "letters", "damaged"}.`

export const formats = ['lines', 'operations']

interface ExportCommandOptions extends GlobalOptions, FilterOptions {
  format: string
  after?: string
  resume?: boolean
  reveal?: boolean
}

export function addExport(program: Command): void {
  const command = program
    .command('export')
    .description('export letters to a file of JSON Lines, losslessly')
    .argument('[file]', 'the file; default: standard output')
    .option('--format <format>', `format of the file: ${formats.join(' or ')}`, 'lines')
    .option('--after <id>', 'only letters after this one; continues an export')
    .option('--reveal', 'server: also what redaction hides; the audit log has it')
    .option('--resume', 'continue the unfinished export FILE.part, if there is one')
  addFilterOptions(command)
    .addHelpText('after', examples)
    .action((file: string | undefined, _, self: Command) => {
      const options = self.optsWithGlobals<ExportCommandOptions>()
      checkOneOf('format', options.format, formats)
      const target = file === '-' ? undefined : file
      checkOptions(target, options)
      if (options.format === 'operations')
        return withStore('export --format operations', options, (opened) =>
          exportOperations(target, opened, options),
        )
      return withSource(options, (source) => exportLetters(target, source, options))
    })
}

function checkOptions(
  file: string | undefined,
  { format, after, resume }: ExportCommandOptions,
): void {
  const given = resume ? '--resume' : after === undefined ? undefined : '--after'
  if (format === 'operations' && given !== undefined)
    throw new RedriveError('INVALID_INPUT', `${given} needs --format lines`)
  if (resume && file === undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      '--resume needs a file: use --after with the id of the last letter on standard output',
    )
  if (resume && after !== undefined)
    throw new RedriveError('INVALID_INPUT', '--resume continues where FILE.part ends: omit --after')
}

/** Where the letters of an export come from. */
interface LetterSource {
  /** The number of letters, for the progress. Undefined: unknown. */
  count: (filter: LetterFilter) => Promise<number | undefined>
  lines: (
    filter: LetterFilter,
    options: ExportOptions,
    position?: ExportPosition,
  ) => AsyncIterable<string>
}

async function withSource(
  options: ExportCommandOptions,
  use: (source: LetterSource) => Promise<void>,
): Promise<void> {
  const server = await findServer(options)
  if (server) return use(await serverSource(server, options))
  const { exportLines } = await import('../../transfer/lines/export.ts')
  return withStore('export', options, ({ store, clock }) =>
    use({
      count: async (filter) => {
        const counts = await store.tally('state', filter)
        return [...counts.values()].reduce((sum, count) => sum + count, 0)
      },
      lines: (filter, more, position) => exportLines(store, clock, filter, more, position),
    }),
  )
}

async function serverSource(
  { client }: Server,
  { resume, reveal }: ExportCommandOptions,
): Promise<LetterSource> {
  if (resume)
    throw new RedriveError(
      'INVALID_INPUT',
      '--resume needs the store itself: on a server, use --after with the id of the last letter',
    )
  const [{ exportLines, letterStart }, { RemoteLetters }] = await Promise.all([
    import('../remote/export-lines.ts'),
    import('../remote/remote-letters.ts'),
  ])
  const letters = new RemoteLetters(client)
  return {
    count: (filter) => letters.count(filter),
    async *lines(filter, { after, onProgress }) {
      const progress = { letters: 0, damaged: 0 }
      const input = { ...filter, after, ...(reveal ? { reveal } : {}) }
      for await (const line of exportLines(client, input)) {
        yield line
        if (!line.startsWith(letterStart)) continue
        progress.letters += 1
        const { letter } = JSON.parse(line) as { letter: { corrupt?: string } }
        if (letter.corrupt !== undefined) progress.damaged += 1
        onProgress?.(progress)
      }
    },
  }
}

async function exportLetters(
  file: string | undefined,
  source: LetterSource,
  options: ExportCommandOptions,
): Promise<void> {
  const given = readFilter(options, systemClock.now())
  const filter = { ...given, state: given.state ?? [...states] }
  if (file === undefined) {
    const { damaged } = await writeLines(source, filter, options, async (line) => {
      if (!terminal.stdout.write(line)) await once(terminal.stdout, 'drain')
    })
    if (damaged > 0) terminal.exitCode = 1
    return
  }
  const target = resolveTarget(file)
  const position = options.resume ? await readPosition(target, filter) : undefined
  const stopping = stopOnSignal()
  const part =
    options.resume && PartFile.find(target) !== undefined
      ? PartFile.continue(target, position?.bytes ?? 0)
      : PartFile.create(target)
  try {
    const { signal } = stopping
    const place = { signal, ...(position ? { position } : {}) }
    const written = await writeLines(source, filter, options, (line) => part.write(line), place)
    if (!signal.aborted) {
      part.finish()
      return reportExport(file, written, options)
    }
    terminal.stderr.write('Stopped. Continue with the same command and --resume.\n')
    terminal.exitCode = stoppedExit
  } finally {
    stopping.end()
    part.close()
  }
}

interface Written {
  letters: number
  damaged: number
}

function reportExport(
  file: string,
  { letters, damaged }: Written,
  { json }: ExportCommandOptions,
): void {
  const warning =
    damaged > 0 ? `${formatCount(damaged, 'letter')} damaged: see redrive list.\n` : ''
  terminal.stdout.write(
    json
      ? `${toJson({ file, letters, damaged })}\n`
      : `${formatCount(letters, 'letter')} written to ${file}.\n${warning}`,
  )
  if (damaged > 0) terminal.exitCode = 1
}

/** Where the unfinished export of this file ends. Undefined if it has not begun. */
async function readPosition(
  file: string,
  filter: LetterFilter,
): Promise<ExportPosition | undefined> {
  const path = PartFile.find(file)
  if (path === undefined || statSync(path).size === 0) return undefined
  const { findPosition } = await import('../../transfer/lines/export.ts')
  const position = await findPosition(readChunks(path))
  if (JSON.stringify(position.header.filter) !== JSON.stringify(filter))
    throw new RedriveError(
      'INVALID_INPUT',
      `${path} has other letters (${JSON.stringify(position.header.filter)}): repeat the options of that export, with a timestamp instead of a duration, or remove ${path}`,
    )
  return position
}

/** Writes the lines until the end or the signal. Returns the number of letters. */
async function writeLines(
  source: LetterSource,
  filter: LetterFilter,
  { after, json }: ExportCommandOptions,
  write: (line: string) => void | Promise<void>,
  { position, signal }: { position?: ExportPosition; signal?: AbortSignal } = {},
): Promise<Written> {
  const written: Written = { letters: position?.letters ?? 0, damaged: 0 }
  if (position?.isFinished) return written
  const of = (await source.count(filter)) ?? 0
  const isLong = !json && of > 1000
  const progress = isLong ? createProgressLine(terminal.stderr, systemClock) : undefined
  const options = {
    ...(after === undefined ? {} : { after }),
    onProgress: (now: Written) => {
      Object.assign(written, now)
      progress?.show({ label: 'export', done: now.letters, total: Math.max(of, now.letters) })
    },
  }
  try {
    for await (const line of source.lines(filter, options, position)) {
      if (signal?.aborted) break
      await write(line)
    }
  } finally {
    progress?.close()
  }
  return written
}

async function exportOperations(
  file: string | undefined,
  opened: Opened,
  options: ExportCommandOptions,
): Promise<void> {
  const filter = readFilter(options, opened.clock.now())
  if (file === undefined)
    return void (await writeItems(opened, filter, (text) => void terminal.stdout.write(text)))
  const letters = await replaceFile(resolveTarget(file), opened.clock.id(), (write) =>
    writeItems(opened, filter, write),
  )
  terminal.stdout.write(
    options.json
      ? `${toJson({ file, letters })}\n`
      : `${formatCount(letters, 'letter')} written to ${file}.\n`,
  )
}

const pageSize = 200

/** Writes page by page, so that a large store need not fit into memory. */
async function writeItems(
  { store }: Opened,
  filter: LetterFilter,
  write: (text: string) => void,
): Promise<number> {
  const { toOperationItem } = await import('../../transfer/operation-file/write.ts')
  const query = { ...filter, order: 'oldest', limit: pageSize, payload: true } as const
  let count = 0
  for await (const letters of readPages((from) => store.find({ ...query, ...from })))
    for (const letter of letters) {
      const item = toJson(toOperationItem(letter), 2).replaceAll('\n', '\n  ')
      write(`${count++ === 0 ? '[' : ','}\n  ${item}`)
    }
  write(count === 0 ? '[]\n' : '\n]\n')
  return count
}

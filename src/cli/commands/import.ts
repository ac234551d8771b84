import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { checkOneOf } from '../../check/keys.ts'
import { systemClock } from '../../clock/clock.ts'
import type { Store } from '../../store.ts'
import type {
  ImportProgress,
  LetterImportOptions,
  LetterImportReport,
  OpenedImport,
} from '../../transfer/lines/import.ts'
import type { ImportReport } from '../../transfer/operation-file/import.ts'
import { readChunks } from '../files.ts'
import { withStore, type GlobalOptions } from '../open.ts'
import { formatCount, toJson, escapeLine } from '../print.ts'
import { findServer, type Server } from '../remote/server.ts'
import { createProgressLine } from '../progress-line.ts'
import { stoppedExit, stopOnSignal } from '../stop-on-signal.ts'
import { formats } from './export.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive import letters.jsonl
  redrive import letters.jsonl --verify-only     check the file, write nothing
  redrive import - < letters.jsonl               from standard input
  redrive import operations.json                 a JSON array of operations

The file is what redrive export writes, in either format. Importing it again
changes nothing, and letters that the store has in a higher version stay.
The first damaged line ends the import with exit code 2; the letters before it
are imported. With --skip-damaged such lines are reported and skipped, and the
exit code is 2 as well. Invalid operations are always skipped and reported.
With --json it prints {"complete", "letters", "added", "existing", "damaged",
"problems"}, and for operations {"added", "duplicates", "problems"}.`

interface ImportCommandOptions extends GlobalOptions {
  format?: string
  skipDamaged?: boolean
  verifyOnly?: boolean
}

export function addImport(program: Command): void {
  program
    .command('import')
    .description('import letters from a file; creates the store if it does not exist')
    .argument('<file>', 'the file, or - for standard input')
    .option('--format <format>', `format: ${formats.join(' or ')}; default: that of the content`)
    .option('--skip-damaged', 'skip damaged lines and report them')
    .option('--verify-only', 'check the file without writing')
    .addHelpText('after', examples)
    .action(async (file: string, _, self: Command) => {
      const options = self.optsWithGlobals<ImportCommandOptions>()
      if (options.format !== undefined) checkOneOf('format', options.format, formats)
      const input = await openInput(file === '-' ? terminal.stdin : readChunks(file))
      return (options.format ?? input.format) === 'operations'
        ? importOperationFile(input.chunks, options)
        : importLetters(input.chunks, file, options)
    })
}

interface Input {
  format: string
  chunks: AsyncIterable<Uint8Array>
}

/** An array is a file of operations; anything else is read as lines. */
async function openInput(source: AsyncIterable<Uint8Array>): Promise<Input> {
  const iterator = source[Symbol.asyncIterator]()
  const first = await iterator.next()
  const start = first.done ? '' : Buffer.from(first.value.subarray(0, 1000)).toString()
  async function* chunks(): AsyncGenerator<Uint8Array> {
    if (!first.done) yield first.value
    for (let next = await iterator.next(); !next.done; next = await iterator.next())
      yield next.value
  }
  return { format: /^\ufeff?\s*\[/.test(start) ? 'operations' : 'lines', chunks: chunks() }
}

async function importLetters(
  chunks: Input['chunks'],
  file: string,
  options: ImportCommandOptions,
): Promise<void> {
  const { openImport } = await import('../../transfer/lines/import.ts')
  const size = file === '-' ? 0 : (statSync(file, { throwIfNoEntry: false })?.size ?? 0)
  const progress = options.json ? undefined : createProgressLine(terminal.stderr, systemClock)
  const stopping = stopOnSignal()
  try {
    const server = options.verifyOnly ? undefined : await findServer(options)
    const settings = {
      skipDamaged: options.skipDamaged === true,
      signal: stopping.signal,
      onProgress: ({ letters, bytes }: ImportProgress) =>
        progress?.show({
          label: 'import',
          done: letters,
          ...(size > 0 ? { share: bytes / size } : {}),
        }),
    }
    const report = server
      ? await sendLetters(server, chunks, settings)
      : await readLetters(await openImport(chunks, settings), options)
    progress?.close()
    printLetterReport(report, options)
    if (stopping.signal.aborted && !report.complete) terminal.exitCode = stoppedExit
  } finally {
    stopping.end()
    progress?.close()
  }
}

function readLetters(
  opened: OpenedImport,
  options: ImportCommandOptions,
): Promise<LetterImportReport> {
  if (options.verifyOnly) return opened.into()
  return importInto(options, 'letters', (store) => opened.into(store))
}

const maxLineBytes = 2 ** 28

/** Sends the lines to a server, which checks and stores them. */
async function sendLetters(
  { client }: Server,
  chunks: Input['chunks'],
  {
    skipDamaged,
    signal,
    onProgress,
  }: Pick<LetterImportOptions, 'signal' | 'onProgress'> & {
    skipDamaged: boolean
  },
): Promise<LetterImportReport> {
  const { splitLines } = await import('../../transfer/lines/split.ts')
  async function* lines(): AsyncGenerator<string> {
    let bytes = 0
    for await (const line of splitLines(chunks, maxLineBytes)) {
      bytes += line.size
      onProgress?.({ letters: Math.max(0, line.number - 1), bytes })
      yield (line.bytes ?? Buffer.from('\n')).toString()
    }
  }
  return client.importLetters({ skipDamaged }, { lines: lines(), ...(signal ? { signal } : {}) })
}

function printLetterReport(report: LetterImportReport, options: ImportCommandOptions): void {
  const { letters, added, existing, damaged, problems } = report
  if (options.json) terminal.stdout.write(`${toJson(report)}\n`)
  else {
    const stopped =
      report.complete || problems.count > 0 ? '' : ' Stopped: import again to continue.'
    terminal.stdout.write(
      options.verifyOnly
        ? `${formatCount(letters, 'letter')} checked.${stopped}\n`
        : `${formatAdded(added, existing)}${stopped}\n`,
    )
    for (const { id, why } of damaged.first)
      terminal.stderr.write(`letter ${id} was damaged when it was exported: ${escapeLine(why)}\n`)
    printProblems(problems.first, problems.count)
  }
  if (problems.count > 0) terminal.exitCode = 2
  else if (damaged.count > 0) terminal.exitCode = 1
}

async function importOperationFile(
  chunks: Input['chunks'],
  options: ImportCommandOptions,
): Promise<void> {
  const [{ importOperations }, { readOperationFile }] = await Promise.all([
    import('../../transfer/operation-file/import.ts'),
    import('../../transfer/operation-file/read.ts'),
  ])
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  const operations = readOperationFile(Buffer.concat(all).toString())
  const { letters, problems } = operations
  // No store is created for a file without operations.
  if (letters.length === 0 || options.verifyOnly)
    return printReport({ added: 0, duplicates: 0, problems }, options)
  const report = await importInto(options, 'operations', (store) =>
    importOperations(store, operations),
  )
  return printReport(report, options)
}

/** Imports into the store, with entries in its audit log. */
async function importInto<R extends { added: number }>(
  options: GlobalOptions,
  id: string,
  run: (store: Store) => Promise<R>,
): Promise<R> {
  const { AuditLog } = await import('../../admin/audit/audit-log.ts')
  const act = { action: 'import', what: { kind: 'store', id } } as const
  return withStore(
    'import --format operations',
    options,
    ({ store, clock }) =>
      new AuditLog({ store, clock }).act(act, async (describe) => {
        const report = await run(store)
        describe({ after: { added: report.added } })
        return report
      }),
    { create: true },
  )
}

function printReport(report: ImportReport, options: GlobalOptions): void {
  const { added, duplicates, problems } = report
  if (options.json) terminal.stdout.write(`${toJson(report)}\n`)
  else {
    terminal.stdout.write(`${formatAdded(added, duplicates)}\n`)
    printProblems(problems, problems.length)
  }
  if (problems.length > 0) terminal.exitCode = 2
}

function formatAdded(added: number, existing: number): string {
  const more = existing > 0 ? `, ${existing.toLocaleString('en')} already exist` : ''
  return `${formatCount(added, 'letter')} added${more}.`
}

const maxPrinted = 20

function printProblems(problems: readonly string[], count: number): void {
  for (const problem of problems.slice(0, maxPrinted))
    terminal.stderr.write(`${escapeLine(problem)}\n`)
  if (count > maxPrinted) terminal.stderr.write(`… ${count} problems in total\n`)
}

import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import type { LetterFilter } from '../../letter/query.ts'
import { addFilterOptions, readFilter, type FilterOptions } from '../filter.ts'
import { withStore, type GlobalOptions, type Opened } from '../open.ts'
import { readPages } from '../pages.ts'
import { formatCount, toJson } from '../print.ts'
import { stoppedExit, stopOnSignal } from '../stop-on-signal.ts'

const examples = `
Examples:
  redrive export operations.json
  redrive export --queue charge-card > charge-card.json

Writes a JSON array of operations with payloads, oldest first; archived letters
only with --state archived. An existing file is replaced only when the new one
is complete; only its owner can read it.
With --json and a file it prints {"file", "letters"}.`

export function addExport(program: Command): void {
  const command = program
    .command('export')
    .description('export letters to a JSON file of operations')
    .argument('[file]', 'the file; default: standard output')
  addFilterOptions(command)
    .addHelpText('after', examples)
    .action((file: string | undefined, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions & FilterOptions>()
      return withStore(options, (opened) => exportTo(file, opened, options))
    })
}

async function exportTo(
  file: string | undefined,
  opened: Opened,
  options: GlobalOptions & FilterOptions,
): Promise<void> {
  const filter = readFilter(options, opened.clock.now())
  if (file === undefined || file === '-')
    return void (await writeItems(opened, filter, (text) => void process.stdout.write(text)))
  const letters = await replaceFile(resolveTarget(file), opened.clock.id(), (write) =>
    writeItems(opened, filter, write),
  )
  process.stdout.write(
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

/**
 * The path to replace: the target of a link, so that the link stays. Only regular files may be
 * replaced.
 */
function resolveTarget(file: string): string {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (!stats && !lstatSync(file, { throwIfNoEntry: false })) return file
    if (!stats)
      throw new RedriveError(
        'INVALID_INPUT',
        `cannot write ${file}: it is a link to a file that does not exist: name the target of the link`,
      )
    if (stats.isFile()) return realpathSync(file)
    const reason = stats.isDirectory()
      ? 'it is a folder: name a file in it'
      : `it is not a regular file: use standard output, such as redrive export > ${file}`
    throw new RedriveError('INVALID_INPUT', `cannot write ${file}: ${reason}`)
  } catch (error) {
    throw toWriteError(file, error)
  }
}

function toWriteError(file: string, error: unknown): RedriveError {
  if (error instanceof RedriveError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const why =
    code === 'ENOENT' ? 'its folder does not exist: create it, or correct the path' : message
  return new RedriveError('INVALID_INPUT', `cannot write ${file}: ${why}`, { cause: error })
}

/**
 * The new file is complete and synced before it replaces the old one; if anything fails, the old
 * one stays.
 */
async function replaceFile(
  file: string,
  draftId: string,
  fill: (write: (text: string) => void) => Promise<number>,
): Promise<number> {
  const draft = `${file}.${draftId}.tmp`
  const stopping = stopOnSignal()
  // Cleaned up at once on a signal: the old file is complete, and the store may be slow to answer.
  stopping.signal.addEventListener('abort', () => {
    rmSync(draft, { force: true })
    process.exit(stoppedExit)
  })
  try {
    const descriptor = openSync(draft, 'wx', 0o600)
    let count: number
    try {
      count = await fill((text) => writeFully(descriptor, text))
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(draft, file)
    syncFolder(dirname(file))
    return count
  } catch (error) {
    rmSync(draft, { force: true })
    throw toWriteError(file, error)
  } finally {
    stopping.end()
  }
}

/** Repeats partial writes until all bytes are written. */
function writeFully(descriptor: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at)
}

/** Syncs the folder, so that the new name is durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

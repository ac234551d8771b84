import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { inspectSpool } from '../../connect/store.ts'
import type { CopyReport } from '../../transfer/copy/copy.ts'
import { RedriveError } from '../../errors.ts'
import { states } from '../../letter/letter.ts'
import { fileOf, nameOf, withStore, type GlobalOptions, type Opened } from '../open.ts'
import {
  formatCount,
  printDocument,
  truncate,
  escapeLine,
  lineWidth,
  formatTable,
} from '../print.ts'
import { refuseServer } from '../remote/server.ts'
import { createProgressLine } from '../progress-line.ts'
import { stoppedExit, stopOnSignal } from '../stop-on-signal.ts'
import { listLiveWorkers } from '../../redelivery/live-workers.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive copy sqlite:redrive.db sqlite:/backup/redrive.db
  redrive copy sqlite:redrive.db sqlite:new.db --verify-only

Copies letters of all states, their payloads as captured and as edited, records
and lifetime totals into an empty store, and compares both stores at the end.
Stop the workers of both stores first. If a copy was interrupted, or letters
were added later, run the same command again to continue.

Exits with 0 if both stores are the same, and with 1 if they differ. With
--json it prints {"ok", "from", "to", "copied", "verdict"}.`

interface CopyCommandOptions extends GlobalOptions {
  verifyOnly?: boolean
}

export function addCopy(program: Command): void {
  program
    .command('copy')
    .description('copy a store to another one of any kind, and verify the copy')
    .argument('<from>', 'URL of the source store, such as sqlite:redrive.db')
    .argument('<to>', 'URL of the target store; created if it does not exist')
    .option('--verify-only', 'compare the stores without writing')
    .addHelpText('after', examples)
    .action((from: string, to: string, _, self: Command) => {
      const options = self.optsWithGlobals<CopyCommandOptions>()
      if (options.server !== undefined) refuseServer({ server: options.server }, 'copy')
      checkExists(from)
      if (options.verifyOnly) checkExists(to)
      if (nameOf(from) === nameOf(to))
        throw new RedriveError(
          'INVALID_INPUT',
          'FROM and TO are the same store: name two different stores',
        )
      // Encrypted letters are copied as they are: the copy needs no keys.
      return withStore(
        'copy',
        { store: from },
        (source) =>
          withStore('copy', { store: to }, (target) => runCopy(source, target, options), {
            create: true,
            decrypt: false,
          }),
        { decrypt: false },
      )
    })
}

function checkExists(url: string): void {
  const file = fileOf(url)
  if (file !== undefined && !existsSync(file))
    throw new RedriveError(
      'STORE_UNAVAILABLE',
      `the store file ${file} does not exist: check the path`,
    )
}

async function runCopy(source: Opened, target: Opened, options: CopyCommandOptions): Promise<void> {
  if (!options.verifyOnly) for (const opened of [source, target]) await checkIdle(opened)
  const names = { from: nameOf(source.url), to: nameOf(target.url) }
  const { copyStore } = await import('../../transfer/copy/copy.ts')
  const progressOutput = options.json
    ? undefined
    : createProgressLine(terminal.stderr, source.clock)
  const stopping = stopOnSignal()
  try {
    const report = await copyStore(source.store, target.store, {
      source: names.from,
      clock: source.clock,
      signal: stopping.signal,
      onProgress: ({ doing, letters, of }) =>
        progressOutput?.show({ label: doing, done: letters, total: of }),
      ...(options.verifyOnly ? { verifyOnly: true } : {}),
    })
    progressOutput?.close()
    if (options.json) printDocument(options, { ...names, ...report })
    else terminal.stdout.write(`${formatSummary(names, report, lineWidth()).join('\n')}\n`)
    if (!report.ok) terminal.exitCode = report.verdict ? 1 : stoppedExit
  } finally {
    stopping.end()
    progressOutput?.close()
  }
}

/**
 * The stores must be idle: letters that change during the copy, or wait in the spool, would be
 * missed.
 */
async function checkIdle({ store, url, clock }: Opened): Promise<void> {
  const workers = await listLiveWorkers(store, clock.now())
  const names = workers.map(({ id }) => id).slice(0, 3)
  if (workers.length > 0)
    throw new RedriveError(
      'INVALID_INPUT',
      `${formatCount(workers.length, 'worker')} of ${nameOf(url)} ran recently (${names.join(', ')}): stop them before the copy`,
    )
  const { path, files, oldFiles } = await inspectSpool(url)
  if (files.length + oldFiles.length > 0)
    throw new RedriveError(
      'INVALID_INPUT',
      `letters of ${nameOf(url)} wait in its spool (${path}): run a worker until they are in the store, stop it, and then copy`,
    )
}

/** The summary, in lines that fit the terminal. */
export function formatSummary(
  { from, to }: { from: string; to: string },
  { ok, copied, verdict }: CopyReport,
  width: number,
): string[] {
  const head = [
    `From ${escapeLine(from)}`,
    `To   ${escapeLine(to)}`,
    `${formatCount(copied, 'letter')} copied in this run.`,
  ]
  if (!verdict)
    return [...head, 'Stopped. Run the same command again to continue.'].map((text) =>
      truncate(text, width),
    )
  const { letters, records, differences, damaged, hash } = verdict
  const rows = states.flatMap((state) => {
    const count = verdict.states[state]
    return count ? [{ state, count: count.toLocaleString('en') }] : []
  })
  const counts = formatTable(
    [
      { title: 'STATE', cell: ({ state }: (typeof rows)[number]) => state },
      { title: 'LETTERS', cell: ({ count }) => count, alignRight: true },
    ],
    rows,
    width,
  )
  const [sameLetters, sameRecords] = [
    formatCount(letters, 'letter'),
    formatCount(records, 'record'),
  ]
  return [
    ...head,
    ...counts,
    ok
      ? `Verified: ${sameLetters}, ${sameRecords} and the totals are the same.`
      : `NOT THE SAME: only ${sameLetters} and ${sameRecords} are the same.`,
    ...differences.first.map(
      ({ kind, name, why }) => `  ${kind} ${escapeLine(name)}: ${escapeLine(why)}`,
    ),
    ...formatRemaining(differences),
    ...(damaged.count > 0
      ? [`${formatCount(damaged.count, 'letter')} damaged in the source, stored as records:`]
      : []),
    ...damaged.first.map(({ id, why }) => `  ${escapeLine(id)}: ${escapeLine(why)}`),
    ...formatRemaining(damaged),
    ...(ok ? [`sha256 ${hash.from}`] : []),
    ...(differences.count > 0
      ? ['Stop all processes that use the two stores, and run the same command again.']
      : []),
  ].map((text) => truncate(text, width))
}

function formatRemaining({ first, count }: { first: unknown[]; count: number }): string[] {
  const left = count - first.length
  return left > 0 ? [`  … and ${left.toLocaleString('en')} more`] : []
}

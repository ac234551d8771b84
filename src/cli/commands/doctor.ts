import type { Command } from 'commander'
import { inspectSpool } from '../../connect/store.ts'
import { maxLimit } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import { verifyCounts } from '../verify-counts.ts'
import { hideSecrets, withStore, type GlobalOptions, type Opened } from '../open.ts'
import {
  formatCount,
  formatRelativeTime,
  printDocument,
  escapeLine,
  paint,
  formatDuration,
  type Style,
} from '../print.ts'
import { listLiveWorkers } from '../../redelivery/live-workers.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive doctor
  redrive doctor --quick           without reading every letter
  redrive doctor --repair          correct indexes and counts (Redis)
  redrive doctor --json | jq .ok

Exits with 0 if the store is healthy, and with 1 if there is a problem (FAIL) or
a secret of the configuration is missing. Warnings (warn) do not count.
With --json it prints {"ok", "store", "findings": [{"kind", "what", "text",
"fix"}]}.`

interface DoctorOptions extends GlobalOptions {
  quick?: boolean
  repair?: boolean
}

/**
 * `warning`: a person may want to act. `problem`: something is broken; the command exits with 1.
 */
type Finding = { what: string; text: string } & (
  | { kind: 'ok'; fix?: never }
  /** `fix`: what to do about it. */
  | { kind: 'warning' | 'problem'; fix: string }
)

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('check the store: settings, counts, corrupt letters and stuck letters')
    .option('--quick', 'do not read every letter')
    .option('--repair', 'repair indexes and counts, if the store can')
    .addHelpText('after', examples)
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<DoctorOptions>()
      return withStore('doctor', options, (opened) => runDoctor(opened, options))
    })
}

async function runDoctor(opened: Opened, options: DoctorOptions): Promise<void> {
  const findings = [
    ...(await checkIndexes(opened, options)),
    ...(await checkHealth(opened)),
    ...(options.quick ? [] : await checkLetters(opened)),
    ...(await checkWorkers(opened)),
    ...(await checkSpool(opened)),
    ...(await checkNotifications(opened)),
    ...opened.configProblems.map((text): Finding => ({
      kind: 'problem',
      what: 'configuration',
      text,
      fix: 'Correct the configuration, and check it with redrive config check.',
    })),
  ]
  const problems = findings.filter(({ kind }) => kind === 'problem').length
  if (options.json)
    printDocument(options, { ok: problems === 0, store: hideSecrets(opened.url), findings })
  else printFindings(hideSecrets(opened.url), findings, problems)
  if (problems > 0) terminal.exitCode = 1
}

const marks: Record<Finding['kind'], [mark: string, style: Style]> = {
  ok: ['ok', 'green'],
  warning: ['warn', 'yellow'],
  problem: ['FAIL', 'red'],
}

function printFindings(url: string, findings: readonly Finding[], problems: number): void {
  const lines = findings.flatMap(({ kind, what, text, fix }) => {
    const [mark, style] = marks[kind]
    const line = `${paint(style, mark.padEnd(4))} ${escapeLine(what)}: ${escapeLine(text)}`
    return fix === undefined ? [line] : [line, `     Fix: ${escapeLine(fix)}`]
  })
  const verdict =
    problems === 0 ? 'The store is healthy.' : `${formatCount(problems, 'problem')} found.`
  terminal.stdout.write(`${escapeLine(url)}\n${lines.join('\n')}\n${verdict}\n`)
}

const storeFix =
  'See the page of this store in docs/operating, and correct the setting or the server.'

async function checkHealth({ store }: Opened): Promise<Finding[]> {
  const { ok, checks, problems } = await store.health()
  const findings: Finding[] = problems.map((text) => ({
    kind: 'problem',
    what: 'store',
    text,
    fix: storeFix,
  }))
  if (!ok && findings.length === 0)
    findings.push({
      kind: 'problem',
      what: 'store',
      text: 'reports that it is not healthy, without a reason',
      fix: storeFix,
    })
  const settings = Object.entries(checks).map(([what, text]): Finding => ({
    kind: 'ok',
    what,
    text,
  }))
  return [...settings, ...findings]
}

/** Whether letters, indexes and counts agree, in stores where they can diverge. */
async function checkIndexes(
  { store }: Opened,
  { quick, repair = false }: DoctorOptions,
): Promise<Finding[]> {
  if (!store.fsck) return repair ? [{ kind: 'ok', what: 'repair', text: nothingToRepair }] : []
  if (quick && !repair) return []
  const { missing, strays, counts, examples, repaired } = await store.fsck({ repair })
  const wrong = missing + strays + (counts ?? 0)
  if (wrong === 0) return [{ kind: 'ok', what: 'indexes', text: 'agree with the letters' }]
  const fix = repaired
    ? 'Nothing is left to do. If it happens again, report it as a bug of Redrive.'
    : 'Run redrive doctor --repair. Workers may keep running.'
  const summary = `${missing} entries missing, ${strays} stale, ${formatCount(counts ?? 0, 'wrong count')}`
  return [
    repaired
      ? { kind: 'warning', what: 'indexes', text: `${summary}: repaired`, fix }
      : { kind: 'problem', what: 'indexes', text: summary, fix },
    ...examples
      .slice(0, maxExamples)
      .map((example): Finding => ({ kind: 'warning', what: 'indexes', text: example, fix })),
  ]
}

const nothingToRepair = 'indexes and letters cannot diverge in this store'

/** Letters that wait in the default spool folder of the store. */
async function checkSpool({ url }: Opened): Promise<Finding[]> {
  const { path, files, oldFiles, bytes, damaged, refused } = await inspectSpool(url)
  const findings: Finding[] = []
  const waiting = files.length + oldFiles.length
  const setAside = damaged + refused
  if (waiting > 0)
    findings.push({
      kind: 'warning',
      what: 'spool',
      text: `letters wait in ${formatCount(waiting, 'file')} of ${bytes} bytes in ${path}`,
      fix: 'Start a worker on this machine: it adds the letters to the store.',
    })
  if (setAside > 0)
    findings.push({
      kind: 'warning',
      what: 'spool',
      text: `${formatCount(setAside, 'file')} set aside in ${path}, because they are damaged or were refused`,
      fix: 'Inspect the files, and remove them.',
    })
  return findings
}

const maxExamples = 5

/** Notifications of alerts that failed, and those that wait for a process with their target. */
async function checkNotifications({ store, clock }: Opened): Promise<Finding[]> {
  const { isEnded, readDeliveries } = await import('../../observers/notify/delivery.ts')
  const deliveries = await readDeliveries(store.records)
  const failed = deliveries.filter(({ state }) => state === 'failed')
  const late = deliveries.filter(
    (delivery) => !isEnded(delivery) && toMs(delivery.dueAt) < clock.now() - lateDeliveryMs,
  )
  const findings: Finding[] = []
  const last = failed.at(-1)
  if (last)
    findings.push({
      kind: 'warning',
      what: 'notifications',
      text: `${formatCount(failed.length, 'notification')} failed, the last to ${last.target}: ${last.answer ?? 'no answer'}`,
      fix: 'Correct the target under notify, and send a test with redrive alerts test.',
    })
  if (late.length > 0)
    findings.push({
      kind: 'warning',
      what: 'notifications',
      text: `${formatCount(late.length, 'notification')} to ${[...new Set(late.map(({ target }) => target))].join(', ')} ${late.length === 1 ? 'is' : 'are'} late`,
      fix: 'Start redrive work or redrive serve with this target in its configuration.',
    })
  return findings
}

/** A live process would have sent a notification within this time. */
const lateDeliveryMs = 10 * 60_000

/** Findings from reading all letters. */
async function checkLetters({ store }: Opened): Promise<Finding[]> {
  const { count, corrupt, differences, changing } = await verifyCounts(store)
  const state = corrupt.length === 0 ? 'none corrupt' : `${corrupt.length} corrupt`
  return [
    { kind: 'ok', what: 'letters', text: `${formatCount(count, 'letter')} read, ${state}` },
    ...corrupt.slice(0, maxExamples).map((letter) => ({
      kind: 'problem' as const,
      what: `letter ${letter.id}`,
      text: `corrupt: ${letter.corrupt}`,
      fix: `Restore it from a backup, or remove it with redrive remove ${letter.id}.`,
    })),
    ...differences.map(({ what, maintained, counted }) => ({
      kind: 'problem' as const,
      what: `count of ${what}`,
      text: `is ${maintained}, but there are ${counted}`,
      fix: 'Report it as a bug of Redrive, with the output of this command.',
    })),
    ...(differences.length === 0
      ? [
          {
            kind: 'ok' as const,
            what: 'counts',
            text: changing ? changedMeanwhile : 'agree with the letters',
          },
        ]
      : []),
  ]
}

const changedMeanwhile = 'letters changed during the check, so not all counts could be compared'

/** A live worker would have taken a letter within this time. */
const lateMs = 60_000

/** Stuck letters, and the workers that could run them. */
async function checkWorkers({ store, clock }: Opened): Promise<Finding[]> {
  const nowMs = clock.now()
  const workers = await listLiveWorkers(store, nowMs)
  const findings: Finding[] = [
    workers.length === 0
      ? { kind: 'ok', what: 'workers', text: 'none is running' }
      : {
          kind: 'ok',
          what: 'workers',
          text: workers
            .map(({ id, queues }) => `${id} (${formatCount(queues.length, 'queue')})`)
            .join(', '),
        },
  ]
  const running = await store.find({ state: 'retrying', limit: maxLimit })
  const lapsed = running.items.filter(
    ({ lease }) => !lease || toMs(lease.expiresAt) < nowMs - lateMs,
  )
  if (lapsed.length > 0)
    findings.push({
      kind: 'warning',
      what: 'leases',
      text: `${formatCount(lapsed.length, 'lease')} expired over a minute ago, for example of letter ${lapsed[0]!.id}`,
      fix: 'Start a worker: it takes the letters over.',
    })
  const unhandled = await store.tally('queue', { state: 'parked', reason: 'no-handler' })
  for (const [queue, count] of unhandled)
    findings.push({
      kind: 'warning',
      what: 'no handler',
      text: `${formatCount(count, 'letter')} of ${queue} ${count === 1 ? 'is' : 'are'} parked, because no worker handles the queue`,
      fix: `Start a worker with a handler for ${queue}; it runs the letters.`,
    })
  const { items } = await store.find({ state: 'pending', order: 'due', limit: 1 })
  const next = items[0]
  if (!next?.retryAt)
    return [...findings, { kind: 'ok', what: 'due', text: 'no letter is scheduled' }]
  const lateBy = nowMs - toMs(next.retryAt)
  if (lateBy > lateMs)
    findings.push({
      kind: 'warning',
      what: 'due',
      text: `letter ${next.id} of ${next.queue} is late by ${formatDuration(lateBy)}`,
      fix:
        workers.length === 0
          ? 'Start a worker: none is running.'
          : 'See redrive workers: a breaker or a pause may hold back the queue, or all slots are busy.',
    })
  else
    findings.push({
      kind: 'ok',
      what: 'due',
      text: `the next letter ${lateBy > 0 ? 'was' : 'is'} due ${formatRelativeTime(toMs(next.retryAt), nowMs)}`,
    })
  return findings
}

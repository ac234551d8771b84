import { once } from 'node:events'
import { Option, type Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import {
  auditActions,
  auditOutcomes,
  type AuditAction,
  type AuditEntry,
  type AuditOutcome,
  type AuditPosition,
  type AuditReport,
} from '../../letter/audit.ts'
import { readLimit, readPastTime } from '../filter.ts'
import { withQueue, withStoreQueue, type GlobalOptions } from '../open.ts'
import {
  escapeLine,
  formatCount,
  formatTable,
  formatTimestamp,
  lineWidth,
  paint,
  printEither,
  toJson,
  type Style,
} from '../print.ts'
import { userName } from '../user-name.ts'
import { terminal } from '../terminal.ts'

interface ListOptions extends GlobalOptions {
  actor?: string
  action?: AuditAction
  what?: string
  outcome?: AuditOutcome
  since?: string
  until?: string
  limit: string
  cursor?: string
}

interface PruneCommandOptions extends GlobalOptions {
  before: string
  reason?: string
  by?: string
}

const examples = `
Examples:
  redrive audit list --actor mia --since 7d
  redrive audit list --what 01995c3a-7b1e-7e2a-9a55-0d6f2b1c8e44
  redrive audit verify
  redrive audit export > audit.jsonl
  redrive audit prune --before 365d --reason "kept for a year"

An action has an entry before it (started) and one after it. The list shows the
second one; --outcome started shows the first.`

const outcomeStyle: Record<AuditOutcome, Style> = {
  started: 'dim',
  done: 'green',
  failed: 'red',
  denied: 'yellow',
}

export function addAudit(program: Command): void {
  const audit = program
    .command('audit')
    .description('show and verify what people did')
    .addHelpText('after', examples)
  addList(audit)
  addVerify(audit)
  audit
    .command('export')
    .description('print the whole audit log as JSON Lines, oldest first')
    .action((_, self: Command) =>
      withQueue(self.optsWithGlobals<GlobalOptions>(), async ({ dlq }) => {
        for await (const line of dlq.exportAudit())
          if (!terminal.stdout.write(line)) await once(terminal.stdout, 'drain')
      }),
    )
  audit
    .command('prune')
    .description('remove old entries; the rest can still be verified')
    .requiredOption('--before <when>', 'older than 90d, 365d, or an ISO timestamp')
    .option('--reason <text>', 'why')
    .option('--by <name>', 'your name')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<PruneCommandOptions>()
      return withStoreQueue('audit prune', options, async ({ dlq, clock }) => {
        const { reason, by = userName() } = options
        const before = readPastTime('--before', options.before, clock.now())
        const removed = await dlq.pruneAudit({ before, by, ...(reason ? { reason } : {}) })
        const count = removed === 1 ? '1 entry' : `${removed.toLocaleString('en')} entries`
        printEither(options, { before, removed }, `${count} removed.\n`)
      })
    })
}

function addList(audit: Command): void {
  audit
    .command('list')
    .description('list entries, newest first')
    .option('--actor <name>', 'only what this person did')
    .addOption(new Option('--action <action>', 'only this action').choices(auditActions))
    .option('--what <id>', 'only this letter, group, queue, bulk action, token or endpoint')
    .addOption(new Option('--outcome <outcome>', 'only this outcome').choices(auditOutcomes))
    .option('--since <when>', 'since: 30s, 15m, 2h, 3d ago, or an ISO timestamp')
    .option('--until <when>', 'before: as --since')
    .option('-n, --limit <count>', 'maximum number of entries', '20')
    .option('--cursor <cursor>', 'continue from this cursor')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<ListOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const { actor, action, what, outcome, since, until, cursor } = options
        const page = await dlq.audit({
          limit: readLimit(options.limit),
          outcome: outcome ?? auditOutcomes.filter((one) => one !== 'started'),
          ...(actor === undefined ? {} : { actor }),
          ...(action === undefined ? {} : { action }),
          ...(what === undefined ? {} : { what }),
          ...(since === undefined ? {} : { since: readPastTime('--since', since, clock.now()) }),
          ...(until === undefined ? {} : { until: readPastTime('--until', until, clock.now()) }),
          ...(cursor === undefined ? {} : { cursor }),
        })
        if (options.json)
          for (const entry of page.items) terminal.stdout.write(`${toJson(entry)}\n`)
        else terminal.stdout.write(formatEntries(page.items))
        if (page.cursor !== undefined) terminal.stderr.write(`--cursor ${page.cursor}\n`)
      })
    })
}

function addVerify(audit: Command): void {
  audit
    .command('verify')
    .description('check that no entry was changed, removed or inserted; exit code 1 if one was')
    .option('--head <seq:hash>', 'the head that an earlier check printed')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions & { head?: string }>()
      const expected = options.head === undefined ? undefined : readHead(options.head)
      return withQueue(options, async ({ dlq }) => {
        const report = await dlq.verifyAudit(expected)
        printEither(options, report, formatReport(report))
        if (!report.ok) terminal.exitCode = 1
      })
    })
}

function readHead(text: string): AuditPosition {
  const [, seq, hash] = /^(\d{1,12}):([\da-f]{64})$/i.exec(text) ?? []
  if (seq === undefined || hash === undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      `--head must be the number and the hash of an entry, such as 42:9f86d0…, got "${text}"`,
    )
  return { seq: Number(seq), hash: hash.toLowerCase() }
}

function formatEntries(entries: readonly AuditEntry[]): string {
  if (entries.length === 0) return 'No entries.\n'
  const lines = formatTable<AuditEntry>(
    [
      { title: 'SEQ', cell: ({ seq }) => String(seq), alignRight: true },
      { title: 'AT', cell: ({ at }) => formatTimestamp(at) },
      { title: 'VIA', cell: ({ via }) => via, optional: true },
      { title: 'ACTOR', cell: ({ actor }) => escapeLine(actor), minWidth: 5 },
      { title: 'ACTION', cell: ({ action, endpoint }) => escapeLine(endpoint ?? action) },
      {
        title: 'OUTCOME',
        cell: ({ outcome, code }) => escapeLine(code ?? outcome),
        style: ({ outcome }) => outcomeStyle[outcome],
        minWidth: 7,
      },
      // The id of a letter keeps the part that encodes the millisecond.
      { title: 'WHAT', cell: ({ what }) => escapeLine(`${what.kind} ${what.id}`), minWidth: 22 },
      {
        title: 'REASON',
        cell: ({ reason = '' }) => escapeLine(reason),
        minWidth: 6,
        optional: true,
      },
    ],
    entries,
    lineWidth(),
  )
  return `${lines.join('\n')}\n`
}

function formatReport({ ok, entries, head, pruned, unfinished, why }: AuditReport): string {
  const count = entries === 1 ? '1 entry' : `${entries.toLocaleString('en')} entries`
  const lines = [
    ok
      ? paint('green', `The audit log is intact: ${count} checked.`)
      : paint('red', `The audit log is damaged after ${count}: ${escapeLine(why ?? '')}.`),
  ]
  if (pruned) lines.push(`Entries up to ${pruned.seq} were pruned.`)
  if (unfinished.length > 0) {
    const list = unfinished.slice(0, 10).join(', ')
    lines.push(`${formatCount(unfinished.length, 'action')} without an outcome: ${list}`)
  }
  if (ok && head.seq > 0) lines.push(`Head: ${head.seq}:${head.hash}`)
  return `${lines.join('\n')}\n`
}

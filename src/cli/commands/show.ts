import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import type {
  App,
  DeadLetter,
  Failure,
  HistoryEntry,
  Payload,
  RetryPolicy,
  Source,
} from '../../letter/letter.ts'
import { viewPayload } from '../../letter/payload-view.ts'
import { confirmedAt } from '../../letter/replay-confirmation.ts'
import { toMs } from '../../letter/time.ts'
import { formatAsTest } from '../letter-as-test.ts'
import { resolveId } from '../letter-ids.ts'
import { withLetters, type GlobalOptions, type OpenedLetters } from '../open.ts'
import {
  escapeBlock,
  formatCount,
  truncate,
  formatRelativeTime,
  formatTimestamp,
  toJson,
  escapeLine,
  lineWidth,
  paint,
  formatDuration,
} from '../print.ts'
import { stateStyle, formatDue } from '../letter-format.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive show 01995c3a        the beginning of an id, at least 4 characters
  redrive show wf_abc123       the source id: of a workflow, a message, a
                               stream or a task
  redrive show 01995c3a --as-test > letter.test.ts
                               a vitest file with its payload, secrets masked
  redrive show 01995c3a --json | jq -r .payload.base64 | base64 -d

With --json each line is one letter, the bytes of its payload in base64.`

export function addShow(program: Command): void {
  program
    .command('show')
    .description('show letters in full: failure, payload, history')
    .argument('<ids...>', 'ids, id prefixes or source ids')
    .option('--max-payload <chars>', 'maximum number of characters of the payload', '4000')
    .option('--reveal', 'server: also what redaction hides; the audit log has it')
    .option('--as-test', 'print a vitest file with the payload, headers and failure')
    .addHelpText('after', examples)
    .action((ids: string[], _, self: Command) => {
      const options = self.optsWithGlobals<ShowOptions>()
      return withLetters(options, (opened) => showLetters(opened, ids, options))
    })
}

interface ShowOptions extends GlobalOptions {
  maxPayload: string
  asTest?: boolean
  reveal?: boolean
}

async function showLetters(
  opened: OpenedLetters,
  ids: string[],
  options: ShowOptions,
): Promise<void> {
  if (options.asTest && (ids.length > 1 || options.json))
    throw new RedriveError('INVALID_INPUT', '--as-test prints one letter, without --json')
  const maxChars = Number(options.maxPayload)
  if (!Number.isInteger(maxChars) || maxChars < 0)
    throw new RedriveError(
      'INVALID_INPUT',
      `--max-payload must be a number of characters, got "${options.maxPayload}"`,
    )
  for (const [index, given] of ids.entries()) {
    const letter = await opened.letters.get(await resolveId(opened.letters, given))
    if (!letter)
      throw new RedriveError('LETTER_NOT_FOUND', `letter ${given} does not exist: it was removed`)
    const separator = index === 0 || options.json ? '' : '\n'
    terminal.stdout.write(`${separator}${format(letter, opened, maxChars, options)}\n`)
  }
}

function format(
  letter: DeadLetter,
  { clock }: OpenedLetters,
  maxChars: number,
  options: ShowOptions,
): string {
  if (options.asTest) return formatAsTest(letter)
  return options.json ? toJson(toJsonLetter(letter)) : formatLetter(letter, clock.now(), maxChars)
}

function toJsonLetter(letter: DeadLetter): object {
  const { id, queue, state, payload, ...rest } = letter
  const { bytes, ...about } = payload
  const base64 = Buffer.from(bytes).toString('base64')
  return { id, queue, state, ...rest, payload: { ...about, base64 } }
}

function formatLetter(letter: DeadLetter, nowMs: number, maxChars: number): string {
  const { payload } = letter
  return [
    `${paint('bold', letter.id)}  ${paint(stateStyle[letter.state], letter.state)}${letter.reason ? ` (${letter.reason})` : ''}`,
    ...listFacts(letter, nowMs).map(
      ([name, value]) => `${paint('dim', name.padEnd(10))} ${escapeLine(value)}`,
    ),
    '',
    paint('bold', 'Failure'),
    ...formatFailure(letter.failure),
    ...(isSameFailure(letter)
      ? []
      : ['', paint('bold', 'First failure'), ...formatFailure(letter.firstFailure)]),
    '',
    `${paint('bold', 'Payload')}  ${escapeLine(formatPayloadFacts(payload))}`,
    indent(escapeBlock(viewPayload(payload, maxChars))),
    '',
    paint('bold', 'Timeline'),
    ...formatTimeline(letter),
  ].join('\n')
}

/** Facts about the letter, one per line; absent ones are left out. */
function listFacts(letter: DeadLetter, nowMs: number): [name: string, value: string][] {
  const formatTime = (at: string): string => `${at} (${formatRelativeTime(toMs(at), nowMs)})`
  const { retries, maxRetries, attempts, review, lease, dependsOn, metadata, tags } = letter
  const confirmAt = confirmedAt(letter)
  const rows: [string, string | undefined][] = [
    ['corrupt', letter.corrupt],
    ['queue', letter.queue],
    ['source', formatSource(letter.source)],
    ['category', formatCategory(letter)],
    ['hint', letter.failure.hint],
    ['group', letter.fingerprint],
    ['priority', letter.priority],
    [
      'retries',
      `${retries} of ${maxRetries}, after ${formatCount(attempts, 'attempt')}, ${formatPolicy(letter.policy)}`,
    ],
    ['seen', letter.occurrences > 1 ? `${letter.occurrences} times` : undefined],
    ['captured', formatTime(letter.deadLetteredAt)],
    ['app', letter.app && formatApp(letter.app)],
    ['due', letter.state === 'pending' && letter.retryAt ? formatTime(letter.retryAt) : undefined],
    [
      'replayed',
      confirmAt === undefined ? undefined : `waits for confirmation until ${formatTime(confirmAt)}`,
    ],
    [
      'running',
      lease
        ? `by ${lease.worker} until ${lease.expiresAt}, ${formatDue(letter, nowMs)}`
        : undefined,
    ],
    ['settled', letter.settledAt && formatTime(letter.settledAt)],
    ['expires', letter.expiresAt && formatTime(letter.expiresAt)],
    ['review', review && formatReview(review)],
    [
      'task',
      letter.task && `${letter.task.id}: ${letter.task.description} (${letter.task.source})`,
    ],
    ['github', letter.github && Object.values(letter.github).join(' ')],
    ['dedupe key', letter.dedupeKey],
    ['lane', letter.lane],
    ['tenant', letter.tenant],
    ['depends on', dependsOn?.join(', ')],
    ['tags', tags.length > 0 ? tags.join(', ') : undefined],
    ['headers', letter.headers && JSON.stringify(letter.headers)],
    ['metadata', Object.keys(metadata).length > 0 ? JSON.stringify(metadata) : undefined],
  ]
  return rows.filter((row): row is [string, string] => row[1] !== undefined)
}

function formatCategory({ category, severity, recoverability, failure }: DeadLetter): string {
  const detail = failure.detail === undefined ? '' : ` (${failure.detail})`
  return `${category}${detail}, severity ${severity}, ${recoverability}`
}

function formatSource(source: Source): string {
  const { kind, ...rest } = source
  return `${kind} ${Object.entries(rest)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')}`
}

function formatApp({ name, version, host, pid }: App): string {
  const program = [name, version].filter((part) => part !== undefined).join(' ')
  return `${program === '' ? '' : `${program} on `}${host}, process ${pid}`
}

function formatPolicy(policy: RetryPolicy): string {
  switch (policy.kind) {
    case 'fixed':
      return `every ${formatDuration(policy.delayMs)}`
    case 'linear':
      return `delays grow by ${formatDuration(policy.stepMs)} up to ${formatDuration(policy.maxMs)}`
    case 'exponential':
      return `delays from ${formatDuration(policy.baseMs)} times ${policy.factor} up to ${formatDuration(policy.maxMs)}`
    case 'custom':
      return `delays by ${policy.name}`
    default:
      return policy.kind
  }
}

function formatReview(review: NonNullable<DeadLetter['review']>): string {
  const note = review.note === undefined ? '' : `: ${review.note}`
  if (review.decidedAt === undefined) return `needed since ${review.neededSince}${note}`
  return `${review.decision ?? 'decided'} by ${review.decidedBy} at ${review.decidedAt}${note}`
}

function formatFailure(failure: Failure, depth = 0): string[] {
  const { name, message, code, status, retryAfterMs, stack, causes } = failure
  const details = [
    ...(code === undefined ? [] : [`code ${code}`]),
    ...(status === undefined ? [] : [`status ${status}`]),
    ...(retryAfterMs === undefined ? [] : [`retry after ${formatDuration(retryAfterMs)}`]),
  ]
  const title = `${name}: ${message}`
  const after = details.length > 0 ? ` (${details.join(', ')})` : ''
  const frames = stack?.startsWith(title) ? stack.slice(title.length + 1) : (stack ?? '')
  const lines = [
    paint('red', indent(escapeBlock(`${depth > 0 ? 'caused by ' : ''}${title}${after}`))),
    ...(frames === '' ? [] : [paint('dim', indent(escapeBlock(frames)))]),
  ]
  return [...lines, ...causes.flatMap((cause) => formatFailure(cause, depth + 1))]
}

/** The first failure is printed only if it differs from the last one. */
function isSameFailure({ failure, firstFailure }: DeadLetter): boolean {
  return failure.name === firstFailure.name && failure.message === firstFailure.message
}

function formatPayloadFacts({
  contentType,
  size,
  version,
  lossy,
  redacted,
  erased,
  reference,
  keyId,
}: Payload): string {
  return [
    contentType,
    formatCount(size, 'byte'),
    ...(version > 1 ? [`version ${version}`] : []),
    ...(lossy ? ['not stored completely'] : []),
    ...(redacted ? ['redacted: it cannot run'] : []),
    ...(erased === undefined ? [] : [`erased at ${erased}`]),
    ...(reference === undefined ? [] : [`stored at ${reference}`]),
    ...(keyId === undefined ? [] : [`encrypted with key ${keyId}`]),
  ].join(', ')
}

function formatTimeline({ history, historyOmitted }: DeadLetter): string[] {
  const entries = history.map(formatEntry)
  if (historyOmitted > 0) entries.splice(1, 0, [`  … ${historyOmitted} more`])
  return entries.flat().map((text) => truncate(text, lineWidth()))
}

function formatEntry({ at, action, from, to, actor, failure, note }: HistoryEntry): string[] {
  const move = from === to || from === null ? (to ?? '') : `${from} → ${to}`
  const details = [note, failure && `${failure.name}: ${failure.message}`].filter(
    (part) => part !== undefined,
  )
  const entry = `  ${formatTimestamp(at)}  ${action.padEnd(10)} ${move.padEnd(20)} ${escapeLine(actor)}`
  return [entry, ...details.map((text) => `      ${escapeLine(text)}`)]
}

function indent(text: string): string {
  return text
    .split('\n')
    .map((one) => `  ${one}`)
    .join('\n')
}

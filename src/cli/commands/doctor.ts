import type { Command } from 'commander'
import { states, type LetterSummary } from '../../letter/letter.ts'
import { maxLimit } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import type { Store } from '../../store.ts'
import { withStore, type GlobalOptions, type Opened } from '../open.ts'
import { counted, fromNow, json, line, paint, span, type Style } from '../print.ts'
import { liveWorkers } from '../workers.ts'

const examples = `
Examples:
  redrive doctor
  redrive doctor --quick           without reading every letter
  redrive doctor --json | jq .ok

Exits with 0 when the store is sound and with 1 when it is not; what is marked
"look" does not count.
With --json it prints {"ok", "store", "findings": [{"kind", "what", "text"}]}.`

interface DoctorOptions extends GlobalOptions {
  quick?: boolean
}

/** kind: fine, worth a look, or broken. */
interface Finding {
  kind: 'ok' | 'warning' | 'problem'
  what: string
  text: string
}

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('look over the store: settings, counts, damage, and what is stuck')
    .option('--quick', 'do not read every letter')
    .addHelpText('after', examples)
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<DoctorOptions>()
      return withStore(options, (opened) => doctor(opened, options))
    })
}

async function doctor(opened: Opened, options: DoctorOptions): Promise<void> {
  const findings = [
    ...(await health(opened)),
    ...(options.quick ? [] : await letters(opened)),
    ...(await waiting(opened)),
  ]
  const problems = findings.filter(({ kind }) => kind === 'problem').length
  if (options.json)
    process.stdout.write(`${json({ ok: problems === 0, store: opened.url, findings }, 2)}\n`)
  else print(opened.url, findings, problems)
  if (problems > 0) process.exitCode = 1
}

const marks: Record<Finding['kind'], [mark: string, style: Style]> = {
  ok: ['ok', 'green'],
  warning: ['look', 'yellow'],
  problem: ['BAD', 'red'],
}

function print(url: string, findings: readonly Finding[], problems: number): void {
  const lines = findings.map(({ kind, what, text }) => {
    const [mark, style] = marks[kind]
    return `${paint(style, mark.padEnd(4))} ${line(what)}: ${line(text)}`
  })
  const verdict = problems === 0 ? 'The store is sound.' : `${counted(problems, 'problem')} found.`
  process.stdout.write(`${line(url)}\n${lines.join('\n')}\n${verdict}\n`)
}

async function health({ store }: Opened): Promise<Finding[]> {
  const { ok, checks, problems } = await store.health()
  const found: Finding[] = problems.map((text) => ({ kind: 'problem', what: 'store', text }))
  if (!ok && found.length === 0)
    found.push({ kind: 'problem', what: 'store', text: 'says that it is not well' })
  const settings = Object.entries(checks).map(([what, text]): Finding => ({
    kind: 'ok',
    what,
    text,
  }))
  return [...settings, ...found]
}

const maxTries = 3
const maxTold = 5

interface Census {
  count: number
  corrupt: LetterSummary[]
  counts: Record<string, Map<string, number>>
}

/** The keys whose counts a store maintains, and how to read them off a letter. */
const countedBy = {
  state: (letter: LetterSummary) => letter.state as string,
  queue: (letter: LetterSummary) => letter.queue,
  category: (letter: LetterSummary) => letter.category as string,
  priority: (letter: LetterSummary) => letter.priority as string,
} as const
type CountedKey = keyof typeof countedBy

/** Reads every letter, and holds the maintained counts against what is there. */
async function letters({ store }: Opened): Promise<Finding[]> {
  // Letters that move while they are read make a difference that is gone the next time.
  let census = await takeCensus(store)
  let differences = await compare(store, census)
  for (let tries = 1; differences.length > 0 && tries < maxTries; tries++) {
    census = await takeCensus(store)
    differences = await compare(store, census)
  }
  const { count, corrupt } = census
  const told = corrupt.slice(0, maxTold).map(({ id, corrupt: why }): Finding => ({
    kind: 'problem',
    what: `letter ${id}`,
    text: `corrupt: ${why}`,
  }))
  const more: Finding[] =
    corrupt.length > maxTold
      ? [{ kind: 'problem', what: 'letters', text: `${corrupt.length} are corrupt in all` }]
      : []
  const sound: Finding = {
    kind: 'ok',
    what: 'letters',
    text: `${counted(count, 'letter')} read, ${corrupt.length === 0 ? 'all sound' : `${corrupt.length} corrupt`}`,
  }
  const counts: Finding[] =
    differences.length > 0
      ? differences
      : [{ kind: 'ok', what: 'counts', text: 'agree with the letters' }]
  return [sound, ...told, ...more, ...counts]
}

async function takeCensus(store: Store): Promise<Census> {
  const counts: Record<CountedKey, Map<string, number>> = {
    state: new Map(),
    queue: new Map(),
    category: new Map(),
    priority: new Map(),
  }
  const census: Census = { count: 0, corrupt: [], counts }
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await store.find({
      state: [...states],
      order: 'oldest',
      limit: maxLimit,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const letter of page.items) {
      census.count++
      if (letter.corrupt !== undefined) census.corrupt.push(letter)
      for (const [key, read] of Object.entries(countedBy)) {
        const map = counts[key as CountedKey]
        map.set(read(letter), (map.get(read(letter)) ?? 0) + 1)
      }
    }
    cursor = page.cursor
  }
  return census
}

async function compare(store: Store, census: Census): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const key of Object.keys(countedBy) as CountedKey[]) {
    const tally = await store.tally(key, { state: [...states] })
    for (const name of new Set([...tally.keys(), ...census.counts[key]!.keys()])) {
      const kept = tally.get(name) ?? 0
      const found = census.counts[key]!.get(name) ?? 0
      if (kept !== found)
        findings.push({
          kind: 'problem',
          what: `count of ${key} ${name}`,
          text: `says ${kept}, but there are ${found}`,
        })
    }
  }
  return findings
}

/** Long enough that a worker would have come. */
const lateMs = 60_000

/** What should move and does not, and who is there to move it. */
async function waiting({ store, clock }: Opened): Promise<Finding[]> {
  const nowMs = clock.now()
  const workers = await liveWorkers(store, nowMs)
  const findings: Finding[] = [
    workers.length === 0
      ? { kind: 'ok', what: 'workers', text: 'none runs now' }
      : {
          kind: 'ok',
          what: 'workers',
          text: workers
            .map(({ name, queues }) => `${name} (${counted(queues.length, 'queue')})`)
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
      text: `${counted(lapsed.length, 'lease')} lapsed over a minute ago, as of letter ${lapsed[0]!.id}: the next worker takes them over`,
    })
  const unhandled = await store.tally('queue', { state: 'parked', reason: 'no-handler' })
  for (const [queue, count] of unhandled)
    findings.push({
      kind: 'warning',
      what: 'no handler',
      text: `${counted(count, 'letter')} of ${queue} ${count === 1 ? 'waits' : 'wait'} for a worker that handles it`,
    })
  const { items } = await store.find({ state: 'pending', order: 'due', limit: 1 })
  const next = items[0]
  if (!next?.retryAt)
    return [...findings, { kind: 'ok', what: 'due', text: 'nothing waits for its time' }]
  const lateBy = nowMs - toMs(next.retryAt)
  if (lateBy > lateMs)
    findings.push({
      kind: 'warning',
      what: 'due',
      text: `letter ${next.id} of ${next.queue} is late by ${span(lateBy)}: ${workers.length === 0 ? 'start a worker' : 'its queue may be braked, or its workers busy'}`,
    })
  else
    findings.push({
      kind: 'ok',
      what: 'due',
      text: `the next letter ${lateBy > 0 ? 'was' : 'is'} due ${fromNow(toMs(next.retryAt), nowMs)}`,
    })
  return findings
}

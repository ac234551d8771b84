import { writeFile } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { storeKinds, type StoreKind } from './location.ts'
import {
  fullSizes,
  openBench,
  quickSizes,
  result,
  type Bench,
  type Result,
  type Sizes,
} from './harness.ts'
import { bulk } from './workloads/bulk.ts'
import { dashboard } from './workloads/dashboard.ts'
import { executor } from './workloads/executor.ts'
import { groups } from './workloads/groups.ts'
import { loops } from './workloads/loops.ts'
import { mailboxes } from './workloads/mailboxes.ts'
import { mailboxKinds, type MailboxKind } from './workloads/mailboxes/kinds.ts'
import { pipeline } from './workloads/pipeline.ts'
import { server } from './workloads/server.ts'
import { backlog } from './workloads/backlog.ts'
import { throughput } from './workloads/throughput.ts'
import { workers } from './workloads/workers.ts'

const workloads: Record<string, (bench: Bench) => Promise<Result[]>> = {
  throughput,
  standing: backlog,
  bulk,
  workers,
  groups,
  server,
  dashboard,
}

/** Workloads that run unless others are named. */
const defaultWorkloads = ['throughput', 'standing', 'workers']

/** Workloads without a store. They run only when named. */
const storeless: Record<string, (sizes: Sizes, on: MailboxKind[]) => Promise<Result[]>> = {
  executor,
  loops,
  mailboxes,
  pipeline,
}

const flags = '[--quick] [--rounds N] [--json FILE]'
const usage = `
  node bench/run.ts [${storeKinds.join('|')}…] [${[...Object.keys(workloads), ...Object.keys(storeless)].join('|')}…] ${flags}
  node bench/run.ts mailboxes [${mailboxKinds.join('|')}…] ${flags}`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean' },
    rounds: { type: 'string' },
    json: { type: 'string' },
  },
})
const withMailboxes = positionals.includes('mailboxes')
const unknownWords = positionals.filter(
  (word) =>
    !isStore(word) &&
    !(withMailboxes && isMailbox(word)) &&
    !(word in workloads) &&
    !(word in storeless),
)
if (unknownWords.length > 0) {
  console.error(`unknown argument: ${unknownWords.join(', ')}\nusage:${usage}`)
  process.exit(2)
}

const defaults = values.quick ? quickSizes : fullSizes
const sizes = values.rounds ? { ...defaults, rounds: Number(values.rounds) } : defaults
const kinds = positionals.filter(isStore)
const chosen = positionals.filter((word) => word in workloads)
const named = positionals.filter((word) => word in storeless)
const results: Result[] = []
for (const name of named)
  results.push(...(await storeless[name]!(sizes, positionals.filter(isMailbox))))
// With `mailboxes`, a kind names a broker.
const onlyStoreless =
  named.length > 0 && chosen.length === 0 && (withMailboxes || kinds.length === 0)
const selectedKinds = kinds.length > 0 ? kinds : (['sqlite'] as const)
for (const kind of onlyStoreless ? [] : selectedKinds)
  results.push(...(await measure(kind, chosen.length > 0 ? chosen : defaultWorkloads)))

console.log(formatTable(results))
if (values.json) {
  const machine = { node: process.version, cores: availableParallelism(), cpu: cpus()[0]?.model }
  await writeFile(values.json, `${JSON.stringify({ machine, sizes, results }, null, 2)}\n`)
}

function isStore(word: string): word is StoreKind {
  return (storeKinds as readonly string[]).includes(word)
}

function isMailbox(word: string): word is MailboxKind {
  return (mailboxKinds as readonly string[]).includes(word)
}

async function measure(kind: StoreKind, names: string[]): Promise<Result[]> {
  const bench = await openBench(kind, sizes)
  try {
    const found: Result[] = []
    for (const name of names) {
      bench.log(`${kind}: ${name}`)
      found.push(...(await workloads[name]!(bench)))
      await bench.clear()
    }
    const delays = [...bench.loopDelaysMs()].map(([what, ms]) =>
      result(kind, `event-loop delay during ${what}, p99`, ms, 'ms', { atMost: 20 }),
    )
    return [...found, ...delays]
  } finally {
    await bench.close()
  }
}

function formatTable(rows: Result[]): string {
  const cells = rows.map(({ store, what, value, unit, target, met }) => [
    store,
    what,
    formatValue(value, unit),
    target ? ('atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`) : '',
    met === undefined ? '' : met ? 'met' : 'MISSED',
  ])
  const head = ['store', 'what', 'measured', 'target', 'verdict']
  const widths = head.map((title, at) =>
    Math.max(title.length, ...cells.map((row) => row[at]!.length)),
  )
  const line = (row: string[]): string =>
    row
      .map((cell, at) => (at === 2 ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
      .join('  ')
  return [line(head), widths.map((width) => '-'.repeat(width)).join('  '), ...cells.map(line)].join(
    '\n',
  )
}

function formatValue(value: number, unit: Result['unit']): string {
  if (unit === 'x') return `${value.toFixed(2)}×`
  if (unit === 'ms' || unit === 'µs') return `${value.toFixed(2)} ${unit}`
  if (unit === 'B') return `${Math.round(value)} B`
  return `${Math.round(value)}${unit}`
}

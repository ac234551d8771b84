// `npm run seeds`: prints each row with its clauses and their tests. Fails when a fulfilled clause
// has no passing test or a failed one, when a server is missing, and when a test belongs to no
// clause.
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { start } from '../../scripts/servers/lifecycle.ts'
import { rows, titleOf } from './rows.ts'

interface Test {
  ancestorTitles: string[]
  title: string
  status: string
}

interface Report {
  testResults: { name: string; message: string; assertionResults: Test[] }[]
}

const root = join(import.meta.dirname, '../..')

/**
 * The tests of this folder, and the contract suite on each broker, whose tests have clauses too.
 */
const folder = 'test/seeds/'
const files = [
  folder,
  'test/mailboxes/memory.test.ts',
  ...globSync('test/mailboxes/*/contract.test.ts', { cwd: root }),
]

/** Runs the tests. Returns the report, and what vitest printed. */
function runTests(): { report: Report; printed: string } {
  const temporary = mkdtempSync(join(tmpdir(), 'redrive-seeds-'))
  const file = join(temporary, 'report.json')
  const vitest = join(root, 'node_modules', '.bin', 'vitest')
  const args = ['run', ...files, '--reporter=json', `--outputFile.json=${file}`]
  const { stdout, stderr } = spawnSync(vitest, args, { cwd: root, encoding: 'utf8' })
  const printed = `${stdout}${stderr}`
  const report = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as Report)
    : { testResults: [] }
  rmSync(temporary, { recursive: true, force: true })
  return { report, printed }
}

const problems: string[] = []

// Without a server its tests are skipped, so their clauses are unverified.
const outcomes = await start(['postgres', 'redis', 'opensearch', 'rabbitmq', 'nats', 'kafka'])
for (const outcome of outcomes)
  if ('missing' in outcome) problems.push(`${outcome.name} is missing: ${outcome.missing}`)

const { report, printed } = runTests()
const results = report.testResults.map((result) => ({
  ...result,
  path: relative(root, result.name),
}))
const tests = results.flatMap((result) => result.assertionResults)
const orphans = new Set(
  results
    .filter(({ path }) => path.startsWith(folder))
    .flatMap(({ assertionResults }) => assertionResults),
)

/** Of more tests than this, only the failed ones are printed one by one. */
const maxPrinted = 25

/** Prints a clause with its tests. */
function isHeld(id: string, clause: string): boolean {
  const title = titleOf(id, clause)
  const own = tests.filter((test) => [...test.ancestorTitles, test.title].includes(title))
  const failed = own.filter(({ status }) => status === 'failed')
  const passed = own.filter(({ status }) => status === 'passed')
  const held = failed.length === 0 && passed.length > 0
  console.log(`  ${(held ? 'held' : 'NOT HELD').padEnd(9)}${clause}`)
  for (const test of own) orphans.delete(test)
  for (const test of own.length > maxPrinted ? failed : own) {
    const mark = test.status === 'passed' ? '✓' : test.status === 'failed' ? '✗' : '–'
    const names = [...test.ancestorTitles, test.title]
    const below = names.slice(names.indexOf(title) + 1).join(' › ')
    console.log(`           ${mark} ${below || test.title}`)
  }
  if (own.length > maxPrinted) console.log(`           ✓ ${passed.length} tests`)
  return held
}

let heldRows = 0
for (const { id, clauses } of rows) {
  console.log(id)
  const unheld = clauses.filter((clause) => !isHeld(id, clause))
  problems.push(...unheld.map((clause) => `no passing test: ${titleOf(id, clause)}`))
  if (unheld.length === 0) heldRows++
}
for (const { path, message, assertionResults } of results)
  if (assertionResults.length === 0) problems.push(`${path}: ${message}`)
for (const { ancestorTitles, title } of orphans)
  problems.push(`a test of no clause: ${[...ancestorTitles, title].join(' › ')}`)

if (problems.length > 0) {
  console.log(`\n${printed}\n${problems.join('\n')}`)
  process.exitCode = 1
}
console.log(`\nseeds: ${heldRows} of ${rows.length} rows held`)

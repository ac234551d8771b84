// `npm run seeds`: prints each row with its clauses and their tests. Fails when a clause that is listed as held has no
// test, or one that failed or was skipped, and when a test belongs to no clause.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { start } from '../../scripts/servers/fleet.ts'
import { rows, titleOf, type Clause } from './rows.ts'

interface Test {
  ancestorTitles: string[]
  title: string
  status: string
}

interface Report {
  testResults: { name: string; message: string; assertionResults: Test[] }[]
}

const root = join(import.meta.dirname, '../..')

/** Runs the tests of this folder. Returns the report, and what vitest printed. */
function runTests(): { report: Report; printed: string } {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-seeds-'))
  const file = join(folder, 'report.json')
  const vitest = join(root, 'node_modules', '.bin', 'vitest')
  const args = ['run', 'test/seeds', '--reporter=json', `--outputFile.json=${file}`]
  const { stdout, stderr } = spawnSync(vitest, args, { cwd: root, encoding: 'utf8' })
  const printed = `${stdout}${stderr}`
  const report = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as Report)
    : { testResults: [] }
  rmSync(folder, { recursive: true, force: true })
  return { report, printed }
}

// Where a server cannot run, its tests are skipped, and what they exercise is not held.
await start(['postgres', 'redis', 'opensearch', 'rabbitmq', 'nats', 'kafka']).catch(
  (error: unknown) => console.error(error),
)
const { report, printed } = runTests()
const tests = report.testResults.flatMap((result) => result.assertionResults)
const orphans = new Set(tests)
const problems: string[] = []

function isHeld(id: string, clause: Clause): boolean {
  const title = titleOf(id, clause.text)
  const own = tests.filter((test) => [...test.ancestorTitles, test.title].includes(title))
  const held = own.length > 0 && own.every(({ status }) => status === 'passed')
  const standing = clause.open === undefined ? (held ? 'held' : 'NOT HELD') : 'open'
  const missing = clause.open === undefined ? '' : ` (missing: ${clause.open})`
  console.log(`  ${standing.padEnd(9)}${clause.text}${missing}`)
  for (const test of own) {
    orphans.delete(test)
    const mark = test.status === 'passed' ? '✓' : test.status === 'failed' ? '✗' : '–'
    const names = [...test.ancestorTitles, test.title]
    const below = names.slice(names.indexOf(title) + 1).join(' › ')
    console.log(`           ${mark} ${below || test.title}`)
  }
  return held
}

const counts = { held: 0, open: 0, broken: 0 }
for (const { id, clauses } of rows) {
  console.log(id)
  const unheld = clauses.filter((clause) => !isHeld(id, clause))
  const broken = unheld.filter(({ open }) => open === undefined)
  problems.push(...broken.map(({ text }) => `no passing test: ${titleOf(id, text)}`))
  counts[broken.length > 0 ? 'broken' : unheld.length > 0 ? 'open' : 'held']++
}
for (const { name, message, assertionResults } of report.testResults)
  if (assertionResults.length === 0) problems.push(`${relative(root, name)}: ${message}`)
for (const { ancestorTitles, title } of orphans)
  problems.push(`a test of no clause: ${[...ancestorTitles, title].join(' › ')}`)

if (problems.length > 0) {
  console.log(`\n${printed}\n${problems.join('\n')}`)
  process.exitCode = 1
}
const broken = counts.broken > 0 ? `, ${counts.broken} not held` : ''
console.log(`\nseeds: ${counts.held} held, ${counts.open} open${broken}`)

// `npm run seeds`: prints each row with its clauses and their tests. Fails when a clause has no
// passing test or a failed one, when a server is missing, and when a test of this folder belongs to
// no clause.
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { start } from '../../scripts/servers/lifecycle.ts'
import { trySync } from '../processes.ts'
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

/** The checks of the contract suite, which runs on each broker. */
const checks = 'src/testing/mailbox/'

/**
 * The tests of this folder, the contract suite on each broker, whose tests have clauses too, and
 * the files that clauses name.
 */
const folder = 'test/seeds/'
const files = new Set(
  [
    folder,
    'test/mailboxes/memory.test.ts',
    ...globSync('test/mailboxes/*/contract.test.ts', { cwd: root }),
    ...rows.flatMap(({ clauses }) => clauses.flatMap(({ tests }) => tests.map(({ file }) => file))),
  ].filter((file) => !file.startsWith(checks)),
)

/** Runs the tests. Returns the report, and what vitest printed. */
function runTests(): { report: Report; printed: string } {
  const temporary = mkdtempSync(join(tmpdir(), 'redrive-seeds-'))
  const file = join(temporary, 'report.json')
  const vitest = join(root, 'node_modules', '.bin', 'vitest')
  const args = ['run', ...files, '--reporter=json', `--outputFile.json=${file}`]
  const { stdout, stderr } = trySync(vitest, args, { cwd: root })
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
const tests = results.flatMap(({ path, assertionResults }) =>
  assertionResults.map((test) => ({ ...test, path })),
)
const orphans = new Set(
  tests.filter(({ path }) => path.startsWith(folder) && path !== `${folder}rows.test.ts`),
)

/** Of more tests than this, only the failed ones are printed one by one. */
const maxPrinted = 25

/** Prints a clause with its tests. Each test that the clause names must pass. */
function isHeld(id: string, { text, tests: named }: Clause): boolean {
  const title = titleOf(id, text)
  const titled = tests.filter((test) => [...test.ancestorTitles, test.title].includes(title))
  const proofs = named.map((one) =>
    tests.filter(
      ({ path, title: full }) =>
        full.includes(one.title) &&
        (one.file.startsWith(checks) ? path.startsWith('test/mailboxes/') : path === one.file),
    ),
  )
  const own = new Set([...titled, ...proofs.flat()])
  const failed = [...own].filter(({ status }) => status === 'failed')
  const passed = [...own].filter(({ status }) => status === 'passed')
  const isProven = proofs.every((all) => all.some(({ status }) => status === 'passed'))
  const held = failed.length === 0 && passed.length > 0 && isProven
  console.log(`  ${(held ? 'held' : 'NOT HELD').padEnd(9)}${text}`)
  for (const test of own) orphans.delete(test)
  for (const test of own.size > maxPrinted ? failed : own) {
    const mark = test.status === 'passed' ? '✓' : test.status === 'failed' ? '✗' : '–'
    const names = [...test.ancestorTitles, test.title]
    const below = names.slice(names.indexOf(title) + 1).join(' › ')
    const where = names.includes(title) ? '' : `${test.path} › `
    console.log(`           ${mark} ${where}${below || test.title}`)
  }
  if (own.size > maxPrinted) console.log(`           ✓ ${passed.length} tests`)
  return held
}

let heldRows = 0
for (const { id, clauses } of rows) {
  console.log(id)
  const unheld = clauses.filter((clause) => !isHeld(id, clause))
  problems.push(...unheld.map(({ text }) => `no passing test: ${titleOf(id, text)}`))
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

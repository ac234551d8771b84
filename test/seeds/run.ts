// `npm run seeds`: one line per row with the tests that hold it. Fails on a due row without one, or with a red one.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { start } from '../../scripts/servers/fleet.ts'
import { quote, rows } from './rows.ts'

interface Report {
  testResults: { assertionResults: { ancestorTitles: string[]; title: string; status: string }[] }[]
}

// Some rows are about a server; while it cannot be had, the row is not held.
await start(['opensearch', 'redis', 'kafka']).catch(() => {})

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'redrive-seeds-'))
const file = join(folder, 'report.json')
const vitest = join(root, 'node_modules', '.bin', 'vitest')
const args = ['run', 'test/seeds', '--reporter=json', `--outputFile.json=${file}`]
const { stderr } = spawnSync(vitest, args, { cwd: root, encoding: 'utf8' })
const report = JSON.parse(readFileSync(file, 'utf8')) as Report
rmSync(folder, { recursive: true, force: true })

const results = report.testResults.flatMap((result) => result.assertionResults)
let unheld = 0
for (const row of rows) {
  const tests = results.filter((test) => test.ancestorTitles.includes(quote(row.id)))
  const held = tests.length > 0 && tests.every((test) => test.status === 'passed')
  if (row.due && !held) unheld++
  const standing = held ? `held by ${tests.length}` : row.due ? 'NOT HELD' : 'not yet'
  console.log(`${row.id.padEnd(4)} ${standing.padEnd(11)} ${row.text}`)
  for (const test of tests)
    console.log(`       ${test.status === 'passed' ? '✓' : '✗'} ${test.title}`)
}
const due = rows.filter((row) => row.due).length
console.log(`\n${due - unheld} of ${due} rows held; ${rows.length - due} rows come later`)
if (unheld > 0) {
  console.log(stderr)
  process.exitCode = 1
}

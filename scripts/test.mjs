// The whole test: types, lint, format, unused code, packaging, then every test. Ends with one plain line of counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const run = (command, args) =>
  spawnSync(join(root, 'node_modules', '.bin', command), args, { cwd: root, stdio: 'inherit' })
    .status === 0

/** Checks that count as one test each; all of them run, so that one run shows everything that is wrong. */
const checks = {
  types: () => run('tsc', ['-p', 'tsconfig.json', '--noEmit']),
  lint: () => run('oxlint', ['--type-aware', '--deny-warnings']),
  format: () => run('oxfmt', ['--check']),
  'unused code': () => run('knip', []),
  packaging: () => run('publint', ['--strict']),
}

const only = process.argv.slice(2)
const failed = []
if (only.length === 0)
  for (const [name, check] of Object.entries(checks)) if (!check()) failed.push(name)

const folder = mkdtempSync(join(tmpdir(), 'redrive-test-'))
const report = join(folder, 'report.json')
const green = run('vitest', [
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${report}`,
  ...only,
])
let counts = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0 }
try {
  counts = JSON.parse(readFileSync(report, 'utf8'))
} catch {
  failed.push('vitest wrote no report')
}
rmSync(folder, { recursive: true, force: true })
if (!green && counts.numFailedTests === 0)
  failed.push('vitest ended with an error outside of any test')
for (const name of failed) console.log(`failed: ${name}`)
const passedChecks =
  only.length === 0
    ? Object.keys(checks).length - failed.filter((name) => name in checks).length
    : 0
const passed = counts.numPassedTests + passedChecks
const failures = counts.numFailedTests + failed.length
const skipped = counts.numPendingTests > 0 ? `, ${counts.numPendingTests} skipped` : ''
console.log(`${passed} passed, ${failures} failed${skipped}`)
process.exitCode = failures > 0 || passed === 0 ? 1 : 0

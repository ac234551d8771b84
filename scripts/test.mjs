// The whole test: types, lint, format, unused code, packaging, then every test, with real servers where there are any.
// Ends with a table of the servers and tools that there were, and one plain line of counts.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lacksStrace } from '../test/faults/strace.ts'
import { start, stop } from './servers/fleet.ts'
import { findProgram } from './servers/machine.ts'
import { servers } from './servers/table.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

// Who interrupts us interrupts the running command as well; we stay to stop the servers.
let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    interrupted = true
  })

const run = (command, args) =>
  new Promise((resolve) => {
    if (interrupted) resolve(false)
    else {
      const path = join(root, 'node_modules', '.bin', command)
      const child = spawn(path, args, { cwd: root, stdio: 'inherit' })
      child.once('error', () => resolve(false))
      child.once('close', (code) => resolve(code === 0))
    }
  })

/** Checks that count as one test each; all of them run, so that one run shows everything that is wrong. */
const checks = {
  types: () => run('tsc', ['-p', 'tsconfig.json', '--noEmit']),
  lint: () => run('oxlint', ['--type-aware', '--deny-warnings']),
  format: () => run('oxfmt', ['--check']),
  'unused code': () => run('knip', []),
  packaging: () => run('publint', ['--strict']),
}

/** The private servers, but for those that the environment names. They come up while the checks run. */
async function startServers() {
  const ours = servers.filter((server) => !process.env[server.variable]).map(({ name }) => name)
  if (ours.length === 0) return []
  try {
    return await start(ours)
  } catch (error) {
    return ours.map((name) => ({ name, missing: error.message }))
  }
}

const only = process.argv.slice(2)
const failed = []
const starting = startServers()
if (only.length === 0)
  for (const [name, check] of Object.entries(checks)) if (!(await check())) failed.push(name)
const outcomes = await starting

const folder = mkdtempSync(join(tmpdir(), 'redrive-test-'))
const report = join(folder, 'report.json')
const green = await run('vitest', [
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

const started = outcomes.filter((outcome) => outcome.started).map(({ name }) => name)
if (started.length > 0) await stop(started)

const tool = (name) => {
  const where = findProgram(name)
  return { name, where, missing: where ? undefined : 'it is not installed' }
}

/** What tests need beyond Node: where it was, or why it was missing. */
const needs = [
  ...servers.map(({ name, variable }) => {
    if (process.env[variable]) return { name, where: `the one in ${variable}` }
    const { url, missing } = outcomes.find((outcome) => outcome.name === name)
    return { name, where: url, missing }
  }),
  { name: 'strace', where: findProgram('strace'), missing: lacksStrace() },
  tool('openssl'),
  tool('promtool'),
]

/** Where nobody reads the table, what is missing must be heard. */
const required = process.env.CI === 'true' || process.env.REDRIVE_REQUIRE_BACKENDS === '1'
const width = Math.max(...needs.map(({ name }) => name.length))
for (const { name, where, missing } of needs) {
  const standing = missing ? `missing, its tests were skipped: ${missing}` : `there: ${where}`
  console.log(`${name.padEnd(width)}  ${standing}`)
  if (missing && required) failed.push(`${name} is missing`)
}

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

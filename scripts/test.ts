// The complete test: types, lint, format, unused code, packaging, then all tests, with real servers
// where available. Ends with a table of the available servers and tools, and one line of counts.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lacksStrace } from '../test/faults/strace.ts'
import { start, stop } from './servers/lifecycle.ts'
import { findProgram } from './servers/machine.ts'
import { servers } from './servers/table.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

// An interrupt also reaches the running command; this process continues, to stop the servers.
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

/** Checks that count as one test each. All of them run, so that one run shows all problems. */
const checks = {
  types: () => run('tsc', ['-p', 'tsconfig.json', '--noEmit']),
  'types of the dashboard': () => run('tsc', ['-p', 'web/tsconfig.json', '--noEmit']),
  lint: () => run('oxlint', ['--type-aware', '--deny-warnings']),
  format: () => run('oxfmt', ['--check']),
  'unused code': () => run('knip', []),
  packaging: () => run('publint', ['--strict']),
}

/** Starts the private servers, except those set in the environment, while the checks run. */
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
  '--reporter=./scripts/stalled-files.mjs',
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
if (!green && counts.numFailedTests === 0) failed.push('vitest failed outside of any test')

const started = outcomes.filter((outcome) => outcome.started).map(({ name }) => name)
if (started.length > 0) await stop(started)

const tool = (name) => {
  const where = findProgram(name)
  return { name, where, missing: where ? undefined : 'not installed' }
}

/** Servers and tools of the tests: their location, or why they are missing. */
const needs = [
  ...servers.map(({ name, variable }) => {
    if (process.env[variable]) return { name, where: `the one in ${variable}` }
    const { url, missing } = outcomes.find((outcome) => outcome.name === name)
    return { name, where: url, missing }
  }),
  { name: 'strace', where: findProgram('strace'), missing: lacksStrace() },
  tool('openssl'),
  tool('promtool'),
  tool('chromium'),
]

/** In CI, missing servers or tools are failures, since nobody reads the table. */
const required = process.env.CI === 'true' || process.env.REDRIVE_REQUIRE_BACKENDS === '1'
const width = Math.max(...needs.map(({ name }) => name.length))
for (const { name, where, missing } of needs) {
  const status = missing ? `missing, its tests were skipped: ${missing}` : `available: ${where}`
  console.log(`${name.padEnd(width)}  ${status}`)
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

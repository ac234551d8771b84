// npm test [-- --changed [revision]] [-- file…]
//
// Without arguments: all checks, then all tests on real servers. `--changed` runs the checks and
// the tests that the changes since the revision (default: HEAD) can touch, nearest first, for about
// two minutes; with `--all` without this limit. Names of files run just these, without checks.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { lacksStrace } from '../test/faults/strace.ts'
import { endProcess, originOf, processesOf } from '../test/process-table.ts'
import { staleParts } from './deep/results.ts'
import { install } from './servers/install.ts'
import { choose, startForTests, stopAfterTests, type Outcome } from './servers/lifecycle.ts'
import { commandLine, findProgram, until } from './servers/machine.ts'
import { servers } from './servers/table.ts'
import { changedFiles, findAffected } from './test/affected.ts'
import { runChecks } from './test/checks.ts'
import { command, isInterrupted, root } from './test/commands.ts'
import { saveDurations, takeUntil } from './test/durations.ts'
import { Phases, printTable } from './test/phases.ts'
import { filesByDuration, readReport } from './test/report.ts'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { changed: { type: 'boolean' }, all: { type: 'boolean' } },
})

/** The sum of the durations of `--changed`; several files run at a time. */
const changedLimitMs = 240_000
const secondsToEnd = 10

const phases = new Phases()
const failed: string[] = []

/** The test files to run; undefined means all. */
function selectFiles(): readonly string[] | undefined {
  if (!options.changed) return positionals.length > 0 ? positionals : undefined
  const { files, all } = findAffected(root, changedFiles(root, positionals[0] ?? 'HEAD'))
  if (all !== undefined) console.log(`${all} is changed, which all tests depend on`)
  const selected = options.all ? files : takeUntil(files, changedLimitMs)
  const rest = files.length - selected.length
  const limited = rest > 0 ? `; ${rest} farther ones are left out (--all runs them)` : ''
  console.log(`The change can touch ${files.length} test files${limited}`)
  return selected
}

/** Starts the private servers, except those set in the environment. */
async function startServers(): Promise<Outcome[]> {
  const ours = servers.filter((server) => !process.env[server.variable]).map(({ name }) => name)
  if (ours.length === 0) return []
  try {
    return await startForTests(ours)
  } catch (error) {
    return ours.map((name) => ({ name, missing: (error as Error).message }))
  }
}

/** Runs vitest. Returns the counts of its report. */
async function runTests(files: readonly string[] | undefined): Promise<[number, number, number]> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-test-'))
  const path = join(folder, 'report.json')
  const run = `${process.pid}-${Date.now()}`
  const isGreen = await command(
    'vitest',
    [
      'run',
      '--reporter=default',
      '--reporter=json',
      '--reporter=./scripts/test/stalled-files.ts',
      `--outputFile.json=${path}`,
      ...(files ?? []),
    ],
    { environment: { REDRIVE_TEST_RUN: run } },
  )
  const report = readReport(path)
  rmSync(folder, { recursive: true, force: true })
  // The workers of the run may still be ending.
  const haveEnded = (): boolean => processesOf(run).length === 0
  await until('the processes of the run ended', haveEnded, secondsToEnd).catch(() => {})
  for (const pid of processesOf(run)) {
    if (!isInterrupted()) failed.push(`a process was left by ${originOf(pid)}: ${commandLine(pid)}`)
    endProcess(pid)
  }
  if (!report) {
    failed.push(isInterrupted() ? 'the run was interrupted' : 'vitest wrote no report')
    return [0, 0, 0]
  }
  if (!isGreen && report.numFailedTests === 0) failed.push('vitest failed outside of any test')
  const byDuration = filesByDuration(report)
  if (files === undefined) saveDurations(byDuration)
  slowest.push(...byDuration.slice(0, 10))
  return [report.numPassedTests, report.numFailedTests, report.numPendingTests]
}

/** Servers and tools of the tests: their location, or why they are missing. */
function listNeeds(
  outcomes: readonly Outcome[],
): { name: string; where?: string; missing?: string }[] {
  const tool = (name: string, missing?: string) => {
    const where = findProgram(name)
    const lack = missing ?? (where ? undefined : 'not installed')
    return { name, ...(where ? { where } : {}), ...(lack ? { missing: lack } : {}) }
  }
  return [
    ...servers.map(({ name, variable }) => {
      if (process.env[variable]) return { name, where: `the one in ${variable}` }
      const outcome = outcomes.find((one) => one.name === name)!
      return 'missing' in outcome
        ? { name, missing: outcome.missing }
        : { name, where: outcome.url }
    }),
    tool('strace', lacksStrace()),
    tool('openssl'),
    tool('promtool'),
    tool('chromium'),
  ]
}

const slowest: { name: string; ms: number }[] = []
const files = selectFiles()
const isWhole = files === undefined
let passedChecks = 0
if (isWhole || options.changed) {
  const isBuilt = await phases.time('build', () =>
    command('node', [join(root, 'scripts', 'ready.mjs'), 'build', 'site']),
  )
  if (!isBuilt) failed.push('build')
  const results = await phases.time('all checks', () => runChecks(phases))
  passedChecks = results.passed.length
  failed.push(...results.failed)
}
const hasTests = files === undefined || files.length > 0
let [passed, failures, skipped] = [passedChecks, 0, 0]
let outcomes: Outcome[] = []
if (hasTests) {
  await phases.time('download and installation of servers', () => install(choose([])))
  outcomes = await phases.time('start of servers', startServers)
  const counts = await phases.time('tests', () => runTests(files))
  passed += counts[0]
  failures += counts[1]
  skipped += counts[2]
  await phases.time('stop of servers', stopAfterTests)

  /** In CI, missing servers or tools are failures, since nobody reads the table. */
  const isRequired = process.env['CI'] === 'true' || process.env['REDRIVE_REQUIRE_BACKENDS'] === '1'
  const needs = listNeeds(outcomes)
  const width = Math.max(...needs.map(({ name }) => name.length))
  console.log('')
  for (const { name, where, missing } of needs) {
    const status = missing ? `missing, its tests were skipped: ${missing}` : `available: ${where}`
    console.log(`${name.padEnd(width)}  ${status}`)
    if (missing && isRequired) failed.push(`${name} is missing`)
  }
}

if (isWhole) {
  const stale = staleParts()
  if (stale.length > 0) {
    console.log('\nParts of npm run deep to run before a release:')
    const width = Math.max(...stale.map(({ name }) => name.length))
    for (const { name, why } of stale) console.log(`  ${name.padEnd(width)}  ${why}`)
  }
}
printTable('Durations', phases.table())
if (slowest.length > 0) printTable('Slowest files', slowest)
console.log('')
for (const name of failed) console.log(`failed: ${name}`)
failures += failed.length
console.log(`${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failures > 0 || passed === 0 ? 1 : 0

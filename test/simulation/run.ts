import { parseArgs } from 'node:util'
import { simulate, type Outcome } from './simulate.ts'
import { required, Coverage } from './coverage.ts'

const usage = `node test/simulation/run.ts [--seeds N] [--from N] [--seed N]

  --seeds N  number of runs (default: 2000)
  --from N   the first seed (default: 0)
  --seed N   runs only this seed and prints all events`

/** A smaller set may miss rare cases by chance. */
const enoughSeeds = 2000
const replayEvery = 100
const shownLines = 40
const maxFailures = 10

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    from: { type: 'string' },
    seed: { type: 'string' },
    help: { type: 'boolean' },
  },
})

if (values.help) console.log(usage)
else if (values.seed !== undefined) await replay(parseInteger('seed', values.seed))
else
  await runAll(
    parseInteger('from', values.from ?? '0'),
    parseInteger('seeds', values.seeds ?? '2000'),
  )

function parseInteger(name: string, text: string): number {
  const value = Number(text)
  if (text !== '' && Number.isSafeInteger(value) && value >= 0) return value
  console.error(`--${name} must be an integer of at least 0, got ${text}\n\n${usage}`)
  process.exit(2)
}

async function replay(seed: number): Promise<void> {
  const outcome = await simulate(seed, { keepLines: Infinity })
  console.log(JSON.stringify(outcome.setup, null, 2))
  for (const line of outcome.trace.last(Infinity)) console.log(line)
  if (outcome.violation) fail(`seed ${seed}: ${describeViolation(outcome)}`)
  else console.log(`seed ${seed} passed, ${outcome.fingerprint}`)
}

async function runAll(from: number, count: number): Promise<void> {
  const startedMs = performance.now()
  const coverage: ReadonlyMap<string, number>[] = []
  let failures = 0
  let events = 0
  let letters = 0
  let virtualMs = 0
  for (let seed = from; seed < from + count && failures < maxFailures; seed++) {
    const outcome = await simulate(seed)
    coverage.push(outcome.coverage)
    events += outcome.events
    letters += outcome.letters
    virtualMs += outcome.virtualMs
    const problem = outcome.violation
      ? describeViolation(outcome)
      : seed % replayEvery === 0
        ? await checkDeterminism(outcome)
        : undefined
    if (problem !== undefined) {
      failures++
      report(outcome, problem)
    }
    progress(seed - from + 1, count, failures, startedMs)
  }
  const seconds = (performance.now() - startedMs) / 1000
  console.log(
    `${coverage.length} seeds in ${seconds.toFixed(0)} s (${(coverage.length / seconds).toFixed(1)} a second): ${letters} letters, ${events} events, ${(virtualMs / 3_600_000).toFixed(1)} hours of virtual time`,
  )
  printCoverage(coverage, count)
  if (failures > 0) fail(`${failures} seeds failed`)
  console.log(process.exitCode ? 'FAILED' : 'OK')
}

/** The same seed must give the same run. */
async function checkDeterminism(outcome: Outcome): Promise<string | undefined> {
  const again = await simulate(outcome.seed)
  if (again.fingerprint === outcome.fingerprint) return undefined
  return `DETERMINISM: two runs differ (${outcome.fingerprint}, ${again.fingerprint})`
}

function describeViolation({ violation }: Outcome): string {
  return `${violation?.invariant}: ${violation?.what}`
}

function report(outcome: Outcome, problem: string): void {
  console.error(`\nseed ${outcome.seed} failed. ${problem}`)
  for (const line of outcome.trace.last(shownLines)) console.error(line)
  console.error(`repeat it with: npm run simulate -- --seed ${outcome.seed}\n`)
}

function progress(done: number, count: number, failures: number, startedMs: number): void {
  if (!process.stdout.isTTY && done % 500 !== 0) return
  const rate = (done / (performance.now() - startedMs)) * 1000
  const line = `${done} of ${count} seeds, ${failures} failed, ${rate.toFixed(1)} a second`
  process.stdout.write(process.stdout.isTTY ? `\r${line}` : `${line}\n`)
  if (process.stdout.isTTY && done === count) process.stdout.write('\n')
}

/** Prints the number of runs that covered each case. */
function printCoverage(coverage: readonly ReadonlyMap<string, number>[], count: number): void {
  const total = Coverage.total(coverage)
  for (const [what, runs] of [...total].sort(([, a], [, b]) => a - b))
    console.log(`${String(runs).padStart(7)}  ${what}`)
  const missed = required.filter((what) => total.get(what) === 0)
  if (missed.length === 0) return
  const message = `never covered: ${missed.join(', ')}`
  if (count >= enoughSeeds) fail(message)
  else console.log(`${message} (expected with few seeds)`)
}

function fail(message: string): void {
  console.error(message)
  process.exitCode = 1
}

// npm run mutants [-- options] [folder or file…]
//
// Makes small changes of the code, one at a time, in a copy of the last commit, and runs the tests
// that each can touch, nearest first. Prints which test noticed it. A change that no test notices
// is a place without a test, or code that is not needed.
//
//   --count N   mutations, spread over the files (default: 60)
//   --seed N    which ones (default: 1)
//   --seconds N the longest that the tests of one mutation run (default: 240)
//   --only LIST numbers of mutations to run, such as 3,17
//   --out FILE  writes the results as JSON
import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { applyTo, mutationsOf, type Mutation } from './mutants/mutate.ts'
import { findAffected } from './test/affected.ts'
import { root } from './test/commands.ts'
import { takeUntil } from './test/durations.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '240' },
    only: { type: 'string' },
    out: { type: 'string' },
  },
})
const core = [
  'src/stores',
  'src/redelivery',
  'src/bulk',
  'src/server/bounds.ts',
  'src/server/check-bounds.ts',
  'src/server/caller.ts',
  'src/server/view.ts',
  'src/server/sign-in',
]
const places = positionals.length > 0 ? positionals : core

function listCode(place: string): string[] {
  if (!statSync(join(root, place)).isDirectory()) return [place]
  return readdirSync(join(root, place), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(place, path))
}

/** Numbers from 0 to 1, the same for the same seed. */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state / 2 ** 31
  }
}

/** The same mutations for the same seed and the same code: each place has an equal share. */
function choose(count: number, seed: number): { path: string; mutation: Mutation }[] {
  const next = numbersFrom(seed)
  const all = places.map((place) =>
    listCode(place).flatMap((path) =>
      mutationsOf(readFileSync(join(root, path), 'utf8')).map((mutation) => ({ path, mutation })),
    ),
  )
  const chosen: { path: string; mutation: Mutation }[] = []
  for (let at = 0; chosen.length < count && all.some((group) => group.length > 0); at++) {
    const group = all[at % all.length]!
    if (group.length > 0) chosen.push(...group.splice(Math.floor(next() * group.length), 1))
  }
  return chosen
}

interface Outcome {
  number: number
  place: string
  change: string
  caught: string | undefined
}

/** The first test that fails, or undefined. */
function firstFailure(copy: string, path: string): string | undefined {
  const limitMs = Number(values.seconds) * 1000
  const { files } = findAffected(root, [path])
  const selected = takeUntil(
    files.filter((file) => file !== 'test/tidy.test.ts'),
    limitMs,
  )
  const report = join(copy, 'mutant-report.json')
  rmSync(report, { force: true })
  const args = ['run', '--bail=1', '--reporter=json', `--outputFile.json=${report}`, ...selected]
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const { status, signal } = spawnSync(process.execPath, [vitest, ...args], {
    cwd: copy,
    timeout: 4 * limitMs,
    killSignal: 'SIGKILL',
    stdio: 'ignore',
  })
  if (status === 0) return undefined
  if (signal !== null) return 'tests that did not end'
  if (!existsSync(report)) return 'no test ended'
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: {
      name: string
      status: string
      assertionResults: { status: string; fullName: string }[]
    }[]
  }
  for (const { name, status: state, assertionResults } of testResults) {
    const failed = assertionResults.find((one) => one.status === 'failed')
    if (failed || state === 'failed')
      return `${relative(copy, name)}: ${failed?.fullName ?? 'load'}`
  }
  return 'a failure outside of any test'
}

const parent = mkdtempSync(join(tmpdir(), 'redrive-mutants-'))
const copy = join(parent, 'copy')
const git = (...args: string[]): void =>
  void execFileSync('git', args, { cwd: root, stdio: 'ignore' })
git('worktree', 'add', '--detach', copy)
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
if (existsSync(join(root, 'dist'))) symlinkSync(join(root, 'dist'), join(copy, 'dist'))
const outcomes: Outcome[] = []
const only = values.only?.split(',').map(Number)
try {
  for (const [index, { path, mutation }] of choose(
    Number(values.count),
    Number(values.seed),
  ).entries()) {
    const number = index + 1
    if (only && !only.includes(number)) continue
    const target = join(copy, path)
    const code = readFileSync(target, 'utf8')
    writeFileSync(target, applyTo(code, mutation))
    const caught = firstFailure(copy, path)
    writeFileSync(target, code)
    const shorten = (text: string): string => text.replaceAll(/\s+/g, ' ').slice(0, 60)
    const change = `${shorten(mutation.before)} → ${shorten(mutation.after)}`
    outcomes.push({ number, place: `${path}:${mutation.line}`, change, caught })
    console.log(
      `${String(number).padStart(3)}  ${path}:${mutation.line}  ${change}\n     ${caught ? `caught by ${caught}` : 'NOT CAUGHT'}`,
    )
  }
} finally {
  git('worktree', 'remove', '--force', copy)
  rmSync(parent, { recursive: true, force: true })
}
if (values.out !== undefined) writeFileSync(values.out, JSON.stringify(outcomes, null, 2))
const caught = outcomes.filter((one) => one.caught !== undefined).length
console.log(`${caught} of ${outcomes.length} mutations were caught`)

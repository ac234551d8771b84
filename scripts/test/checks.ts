// The checks of `npm run check`, which `npm test` runs before the tests. Each counts as one test.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command } from './commands.ts'
import { findBadCommits } from './commits.ts'
import type { Phases } from './phases.ts'

/** Writes what is wrong to the open file, and returns whether nothing is. */
type Check = (output: number) => Promise<boolean>

const run =
  (name: string, ...args: string[]): Check =>
  (output) =>
    command(name, args, { output })

// Each checker of the compiler reads the declarations of libraries again: one needs half the CPU
// time of four.
const types = (project: string): Check => run('tsc', '-p', project, '--noEmit', '--checkers', '1')

/** The longest first. */
const checks: Readonly<Record<string, Check>> = {
  types: types('tsconfig.json'),
  lint: run('oxlint', '--type-aware', '--deny-warnings'),
  'types of the dashboard': types('web/tsconfig.json'),
  'unused code': run('knip'),
  packaging: run('publint', '--strict'),
  format: run('oxfmt', '--check'),
  commits: (output) => {
    const bad = findBadCommits()
    for (const line of bad) writeSync(output, `${line}\n`)
    return Promise.resolve(bad.length === 0)
  },
}

const atOnce = 2

/**
 * Runs all checks, so that one run shows all problems, and prints what each has written. Returns
 * the names of the checks that passed and failed.
 */
export async function runChecks(phases: Phases): Promise<{ passed: string[]; failed: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-checks-'))
  const waiting = Object.entries(checks)
  const passed: string[] = []
  const failed: string[] = []
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [name, check] = next
      const path = join(folder, name)
      const output = openSync(path, 'w')
      const isGreen = await phases.time(name, () => check(output))
      closeSync(output)
      ;(isGreen ? passed : failed).push(name)
      const written = readFileSync(path, 'utf8')
      if (!isGreen) console.error(written)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  rmSync(folder, { recursive: true, force: true })
  return { passed, failed }
}

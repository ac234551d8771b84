import { fork, type ChildProcess } from '../../processes.ts'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BulkAction, BulkResult } from '../../../src/letter/bulk-action.ts'
import { never } from '../../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { chance } from '../chance.ts'
import { pause } from '../child.ts'
import { createEnvironment } from '../environment.ts'
import type { KillPoint } from './kill-store.ts'
import { isRejected, options, queue } from './work.ts'

export interface BulkCrashSettings {
  /** `sqlite:FILE`, `postgres` or `redis` for a private server, or a URL. Default: a new file. */
  store?: string
  letters: number
  kills: number
  seed: number
}

export interface BulkCrashResult {
  action: BulkAction
  kills: number
  /** Letters whose handler was called more than once. */
  repeated: number
  problems: string[]
}

const worker = fileURLToPath(new URL('worker.ts', import.meta.url))
const enqueuedAtOnce = 5000
const pollMs = 20
/** Time without progress after which a run is stuck, even on a busy machine. */
const standstillMs = 60_000

/** Retries many letters while the process that does it is killed again and again. */
export function crashBulk(settings: BulkCrashSettings): Promise<BulkCrashResult> {
  return withLetters(settings, async ({ dlq, ledger, run }) => {
    const plan = await dlq.plan('retry', { queue })
    // Each letter is scheduled, claimed and settled.
    const kills = await run(plan, 3)
    return { ...(await verify(dlq, plan.id, ledger)), kills }
  })
}

/** A store with letters, and workers that can be killed. */
export interface BulkCrash {
  dlq: DeadLetterQueue
  /** The file in which the handler writes what it runs. */
  ledger: string
  /** Runs a planned action, which writes each letter this often, and returns the kills. */
  run: (plan: BulkAction, writesPerLetter: number) => Promise<number>
}

/** Creates a store with letters for `work`, and removes it then. */
export async function withLetters<T>(
  settings: BulkCrashSettings,
  work: (crash: BulkCrash) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'redrive-bulk-'))
  const environment = await createEnvironment(settings.store, dir, 0)
  try {
    const dlq = await DeadLetterQueue.open(environment.url, options)
    try {
      const ledger = join(dir, 'ledger')
      writeFileSync(ledger, '')
      await seed(dlq, settings.letters)
      const run = async ({ id }: BulkAction, writesPerLetter: number): Promise<number> => {
        await dlq.run(id)
        const writes = writesPerLetter * settings.letters
        return runWithKills(dlq, id, killPoints(settings, writes), (point) =>
          start([environment.url, ledger, ...(point ? [String(point.after), point.at] : [])]),
        )
      }
      return await work({ dlq, ledger, run })
    } finally {
      await dlq.close()
    }
  } finally {
    await environment.end(false)
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Letters that are parked at capture, and are parked again if their run fails. */
async function seed(dlq: DeadLetterQueue, letters: number): Promise<void> {
  const context = { policy: never(), maxRetries: 5 }
  for (let count = 0; count < letters; count += enqueuedAtOnce)
    await dlq.enqueueAll(
      Array.from({ length: Math.min(enqueuedAtOnce, letters - count) }, (_, index) => ({
        operation: { type: queue, payload: { number: count + index } },
        error: new Error('failed'),
        context,
      })),
    )
}

async function start(args: readonly string[]): Promise<ChildProcess> {
  const child = fork(worker, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'message')
  return child
}

/**
 * Where each worker but the last kills itself. Each worker writes at most one batch more than its
 * point says, so half of the writes are left when the last point is reached.
 */
function killPoints({ kills, seed: random }: BulkCrashSettings, writes: number): KillPoint[] {
  const dice = chance(random)
  return Array.from({ length: kills }, () => ({
    after: Math.floor(dice.between(0, writes / (2 * kills))),
    at: dice.pick(['before', 'during', 'after']),
  }))
}

/** Starts a worker for each point, and one more, until the action has ended. */
async function runWithKills(
  dlq: DeadLetterQueue,
  id: string,
  points: readonly KillPoint[],
  startWorker: (point?: KillPoint) => Promise<ChildProcess>,
): Promise<number> {
  let killed = 0
  let child = await startWorker(points[0])
  let reached = -1
  let reachedMs = performance.now()
  try {
    for (;;) {
      const { state, count, progress } = await dlq.bulkAction(id)
      if (state === 'finished') return killed
      const done = 2 * (count - progress.pending) - progress.waiting
      if (done > reached) [reached, reachedMs] = [done, performance.now()]
      if (performance.now() - reachedMs > standstillMs)
        throw new Error(`no progress for ${standstillMs} ms: ${JSON.stringify(progress)}`)
      if (child.signalCode === 'SIGKILL') {
        killed += 1
        child = await startWorker(points[killed])
      } else if (child.exitCode === null) await pause(pollMs)
      else throw new Error(`a worker has ended with exit code ${child.exitCode}`)
    }
  } finally {
    await end(child)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  if (child.kill('SIGKILL')) await exited
}

/** Compares the results with the totals, the letters and the ledger of the handler. */
async function verify(
  dlq: DeadLetterQueue,
  id: string,
  ledger: string,
): Promise<Omit<BulkCrashResult, 'kills'>> {
  const action = await dlq.bulkAction(id)
  const runs = new Map<string, number>()
  for (const line of readFileSync(ledger, 'utf8').split('\n').slice(0, -1))
    runs.set(line, (runs.get(line) ?? 0) + 1)
  const problems: string[] = []
  const counts = { succeeded: 0, failed: 0 }
  const seen = new Set<string>()
  for (let cursor: string | undefined; ;) {
    const page = await dlq.results(id, { limit: 1000, ...(cursor === undefined ? {} : { cursor }) })
    for (const result of page.items) {
      seen.add(result.id)
      if (result.outcome === 'succeeded' || result.outcome === 'failed') counts[result.outcome] += 1
      problems.push(...problemsOf(result, runs.get(result.id) ?? 0))
    }
    if (page.cursor === undefined) break
    cursor = page.cursor
  }
  const { progress, count } = action
  if (seen.size !== count) problems.push(`${seen.size} results for ${count} letters`)
  if (counts.succeeded !== progress.succeeded || counts.failed !== progress.failed)
    problems.push(`totals ${JSON.stringify(progress)}, results ${JSON.stringify(counts)}`)
  const { states } = await dlq.stats()
  if (states.resolved !== counts.succeeded || states.parked !== counts.failed)
    problems.push(`letters ${JSON.stringify(states)}, results ${JSON.stringify(counts)}`)
  const repeated = [...runs.values()].filter((count) => count > 1).length
  return { action, repeated, problems }
}

function problemsOf({ id, outcome, runs = 0 }: BulkResult, inLedger: number): string[] {
  const expected = isRejected(id) ? 'failed' : 'succeeded'
  return [
    ...(outcome === expected ? [] : [`${id} is ${outcome}, expected ${expected}`]),
    ...(inLedger === 0 ? [`${id} never ran`] : []),
    // A worker may die after it has claimed a letter and before it has called the handler.
    ...(inLedger > runs ? [`${id} ran ${inLedger} times, its result says ${runs}`] : []),
  ]
}

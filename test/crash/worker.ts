import type { Run } from '../../src/redelivery/run.ts'
import { beChild, openQueue, pause, ready } from './child.ts'
import type { ChangeFact, StopPoint } from './ledger.ts'
import type { Plan } from './plan.ts'
import { codeOf, recordStore, type RecordingStore } from './record-store.ts'

/** A worker of the crash test: a queue with one handler that executes the plan of the letter. */

const { settings, ledger } = beChild()
const { leaseMs } = settings

let whenQuiet: RecordingStore['whenQuiet']

/** Letters whose first result stops this process before it reaches the store. */
const stopBeforeSettle = new Set<string>()

async function beforeApply(changes: readonly ChangeFact[]): Promise<void> {
  for (const { id, epoch } of changes)
    if (epoch !== undefined && stopBeforeSettle.delete(id)) await stopHere(id, epoch, 'settle')
}

/**
 * Stops this process until the parent resumes it. Not during a store call: the process might hold
 * the lock of the file, and no other worker could take over.
 */
function stopHere(id: string, epoch: number, point: StopPoint): Promise<void> {
  return whenQuiet(() => {
    ledger.write({ e: 'self.stop', id, epoch, point })
    process.kill(process.pid, 'SIGSTOP')
  })
}

function die(how: 'SIGKILL' | 'abort' | 'exit'): void {
  if (how === 'abort') process.abort()
  else if (how === 'exit') process.exit(7)
  else process.kill(process.pid, 'SIGKILL')
}

const signalWaitMs = 10_000

/** Waits until the run is aborted, with a time limit. */
function waitForAbort(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    setTimeout(resolve, signalWaitMs).unref()
  })
}

/** Blocks the event loop without using the CPU, so that no lease can be renewed. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Executes the plan of one letter. True if this run succeeds. */
async function work(plan: Plan, { letter: { id }, epoch, attempt, signal }: Run): Promise<boolean> {
  const first = attempt <= 1
  if (plan.kind === 'pauser' && first) {
    if (plan.point === 'settle') stopBeforeSettle.add(id)
    else await stopHere(id, epoch, plan.point)
    if (plan.point === 'signal') await waitForAbort(signal)
    return true
  }
  if (plan.kind === 'blocker' && first) block(1.5 * leaseMs)
  await pause(plan.workMs)
  if (plan.kind === 'poison') {
    ledger.write({ e: 'self.kill', id, epoch, how: plan.how })
    die(plan.how)
    await pause(signalWaitMs)
  }
  return plan.kind !== 'doomed' && !(plan.kind === 'flaky' && attempt <= plan.failures)
}

async function handler(run: Run): Promise<void> {
  const { letter, epoch, attempt, signal } = run
  ledger.write({ e: 'run.start', id: letter.id, epoch, attempt })
  const ok = await work(run.input as Plan, run)
  ledger.write({ e: 'run.end', id: letter.id, epoch, ok, aborted: signal.aborted })
  if (!ok) throw Object.assign(new Error('connection reset by peer'), { code: 'ECONNRESET' })
}

const options = {
  leaseMs,
  pollMs: 50,
  sweepMs: 200,
  graceMs: 500,
  maxConcurrent: 4,
  backoff: { kind: 'fixed', delayMs: 20 },
  breaker: false,
} as const
const { dlq } = await openQueue(settings, ledger, options, (store) => {
  const recording = recordStore(store, ledger, beforeApply)
  whenQuiet = recording.whenQuiet
  return recording.store
})
for (const type of ['resolved', 'rescheduled', 'exhausted', 'parked', 'released'] as const)
  dlq.on(type, ({ letter }) =>
    ledger.write({ e: 'settled', id: letter.id, epoch: letter.epoch, as: type }),
  )
dlq.on('lease-lost', ({ letter: { id, epoch } }) => ledger.write({ e: 'lease.lost', id, epoch }))
dlq.on('error', ({ during, error }) =>
  ledger.write({ e: 'error', during, code: codeOf(error), error: String(error) }),
)
dlq.handle('work', handler)
dlq.start()
ready(ledger, async () => {
  await dlq.stop({ drainMs: 100 })
  await dlq.close()
})

import type { Run } from '../../src/redelivery/run.ts'
import { beChild, openQueue, pause, ready } from './child.ts'
import type { ChangeFact, StopPoint } from './ledger.ts'
import type { Plan } from './plan.ts'
import { codeOf, witness, type Witness } from './witness.ts'

/** A worker of the crash test: a queue with one handler that does to its process what the letter says. */

const { settings, ledger } = beChild()
const { leaseMs } = settings

let whenQuiet: Witness['whenQuiet']

/** Letters whose first result is held back here, before it reaches the store. */
const stopBeforeSettle = new Set<string>()

async function beforeApply(changes: readonly ChangeFact[]): Promise<void> {
  for (const { id, epoch } of changes)
    if (epoch !== undefined && stopBeforeSettle.delete(id)) await stopHere(id, epoch, 'settle')
}

/**
 * Stands still, right here, until the parent lets it go on. Not while the store works for this process: it might
 * hold the lock of the file, and then nobody could take over.
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

/** Waits until the run is told to stop, but not for ever. */
function told(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    setTimeout(resolve, signalWaitMs).unref()
  })
}

/** Stops the event loop without using the processor, so that not even a lease can be renewed. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Carries out the plan of one letter. True if this run succeeds. */
async function work(plan: Plan, { letter: { id }, epoch, attempt, signal }: Run): Promise<boolean> {
  const first = attempt <= 1
  if (plan.kind === 'pauser' && first) {
    if (plan.point === 'settle') stopBeforeSettle.add(id)
    else await stopHere(id, epoch, plan.point)
    if (plan.point === 'signal') await told(signal)
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
  const witnessed = witness(store, ledger, beforeApply)
  whenQuiet = witnessed.whenQuiet
  return witnessed.store
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

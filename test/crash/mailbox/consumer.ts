import { DLQPolicy } from '../../../src/policy/dlq-policy.ts'
import { mailboxDestination } from '../../../src/loops/destination.ts'
import { MainLoop } from '../../../src/loops/main-loop.ts'
import type { ProcessContext } from '../../../src/loops/work.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { connect } from '../../../src/connect/store.ts'
import { systemClock, sleep } from '../../../src/clock/clock.ts'
import { flushCompileCache } from 'node:module'
import { shaOf } from '../plan.ts'
import { codeOf } from '../record-store.ts'
import { bugs } from './bugs.ts'
import { backoffMs, beChild, names, openWithRetry, visibilitySeconds } from './child.ts'
import { failpoints, withFailpoints } from './failpoints.ts'
import { flakyFailures, maxDeliveries, planOf, stopMs } from './plan.ts'
import { recordLoopParts } from './record-loop-parts.ts'

/** A consumer of the crash test: a loop whose handler executes the plan of the message. */

const { settings, ledger } = beChild()
const { dir, url, letters, bug } = settings

/** Informs the parent before this process stops itself. */
const wake = (): Promise<void> =>
  new Promise((resolve) => {
    process.send!('stopping', () => resolve())
  })
const faults = failpoints({ dir, ledger, wake })

async function handler(context: ProcessContext): Promise<string> {
  const { message, signal } = context
  const { id, deliveries, failures } = message
  const plan = planOf(message.headers)
  ledger.write({ e: 'started', id, deliveries, failures })
  if (plan?.kind === 'killer') process.kill(process.pid, 'SIGKILL')
  await faults.reach('mid-handler', message)
  await sleep(systemClock, plan?.workMs ?? 0, signal)
  if (signal.aborted && codeOf(signal.reason) === 'CLOSED') {
    ledger.write({ e: 'stopped', id, deliveries })
    throw signal.reason
  }
  const fails = plan?.kind === 'doomed' || (plan?.kind === 'flaky' && failures < flakyFailures)
  if (!fails) {
    ledger.write({ e: 'processed', id, deliveries, sha: shaOf(message.body.bytes) })
    return id
  }
  if (failures === maxDeliveries - 1) await faults.reach('last-failure', message)
  ledger.write({ e: 'failed', id, deliveries })
  throw Object.assign(new Error('connection reset by peer'), { code: 'ECONNRESET' })
}

const store = await connect(letters, systemClock)
const queue = await DeadLetterQueue.open(store, { worker: settings.name })
const requests = await openWithRetry(url, names.requests, ledger)
const dead = await openWithRetry(url, names.dead, ledger)
const correct = { requests, dead: mailboxDestination(dead), letters: queue.deadLetters() }
const fragile = withFailpoints(correct, faults)
const parts = recordLoopParts(bug ? bugs[bug].plant(fragile) : fragile, ledger)

const loop = new MainLoop({
  requests: parts.requests,
  process: (_, context) => handler(context),
  concurrency: 3,
  visibilitySeconds,
  waitSeconds: 1,
  backoff: { kind: 'fixed', delayMs: backoffMs },
  dlq: {
    to: parts.dead,
    policy: new DLQPolicy({ maxDeliveryCount: maxDeliveries }),
    route: (_, { headers }) => ((planOf(headers)?.n ?? 0) % 2 === 0 ? parts.dead : parts.letters),
  },
  onEvent: (event) => {
    if (event.type === 'error')
      ledger.write({ e: 'error', during: event.during, code: codeOf(event.error) })
  },
})

async function finish(): Promise<void> {
  await loop.shutdown({ timeoutMs: stopMs })
  await Promise.all([requests.close(), dead.close(), queue.close()])
  process.exit(0)
}

process.once('SIGTERM', () => void finish())
ledger.write({ e: 'ready' })
flushCompileCache()
await loop.run()

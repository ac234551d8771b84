import { sleep, systemClock } from '../../../src/clock/clock.ts'
import { MainLoop } from '../../../src/loops/main-loop.ts'
import type { ProcessContext } from '../../../src/loops/work.ts'
import { DLQPolicy } from '../../../src/policy/dlq-policy.ts'
import { shaOf } from '../plan.ts'
import { codeOf } from '../record-store.ts'
import { bugs, type BugName } from './bugs.ts'
import { backoffMs, visibilitySeconds } from './child.ts'
import { withFailpoints, type Failpoints } from './failpoints.ts'
import type { Ledger } from './ledger.ts'
import type { LoopParts } from './loop-parts.ts'
import { flakyFailures, maxDeliveries, planOf } from './plan.ts'
import { recordLoopParts } from './record-loop-parts.ts'

export interface ConsumerOptions {
  parts: LoopParts
  ledger: Ledger
  faults: Failpoints
  bug: BugName | undefined
  /** Ends the process at once. */
  die: () => Promise<void>
}

/** The loop of a consumer: its handler executes the plan of each message. */
export function consumerLoop({
  parts: correct,
  ledger,
  faults,
  bug,
  die,
}: ConsumerOptions): MainLoop {
  async function handler({ message, signal }: ProcessContext): Promise<string> {
    const { id, deliveries, failures } = message
    const plan = planOf(message.headers)
    ledger.write({ e: 'started', id, deliveries, failures })
    if (plan?.kind === 'killer') await die()
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
  const fragile = withFailpoints(correct, faults)
  const parts = recordLoopParts(bug ? bugs[bug].plant(fragile) : fragile, ledger)
  return new MainLoop({
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
}

import { flushCompileCache } from 'node:module'
import { systemClock } from '../../../src/clock/clock.ts'
import { connect } from '../../../src/connect/store.ts'
import { mailboxDestination } from '../../../src/loops/destination.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { beChild, names, openWithRetry } from './child.ts'
import { consumerLoop } from './consumer-loop.ts'
import { failpoints } from './failpoints.ts'
import { stopMs } from './plan.ts'

/** A consumer of the crash test, in a process that can be killed. */

const { settings, ledger } = beChild()
const { dir, url, letters, bug } = settings

/** Informs the parent before this process stops itself. */
const wake = (): Promise<void> =>
  new Promise((resolve) => {
    process.send!('stopping', () => resolve())
  })

const store = await connect(letters, systemClock)
const queue = await DeadLetterQueue.open(store, { worker: settings.name })
const requests = await openWithRetry(url, names.requests, ledger)
const dead = await openWithRetry(url, names.dead, ledger)
const loop = consumerLoop({
  parts: { requests, dead: mailboxDestination(dead), letters: queue.deadLetters() },
  ledger,
  faults: failpoints({ dir, ledger, wake }),
  bug,
  die: async () => void process.kill(process.pid, 'SIGKILL'),
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

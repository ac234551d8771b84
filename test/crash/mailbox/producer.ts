import { flushCompileCache } from 'node:module'
import { chance } from '../chance.ts'
import { pause } from '../child.ts'
import { shaOf } from '../plan.ts'
import { codeOf } from '../witness.ts'
import { bugs } from './bugs.ts'
import { beChild, names, opened } from './child.ts'
import { bytesOf, planHeader, planner, type Plan } from './plan.ts'

/**
 * A producer of the crash test. It writes down what it is about to send, and takes it for sent only when `send` resolved. Where the
 * broker deduplicates it sends again what failed, with the same id; elsewhere nobody knows what became of that.
 */

const { settings, ledger } = beChild()
const dice = chance(settings.seed)
const nextPlan = planner(dice, settings.bug && bugs[settings.bug].fault)
const mailbox = await opened(settings.url, names.requests, ledger)
const stopping = new AbortController()

const maxWaiting = 40
const maxTries = 4

async function send(plan: Plan): Promise<void> {
  const id = `${settings.name}-${plan.n}`
  const body = bytesOf(plan)
  const options = {
    id,
    contentType: 'application/json',
    headers: { [planHeader]: JSON.stringify(plan) },
    ...(plan.replies ? { replyTo: names.replies } : {}),
  }
  ledger.write({ e: 'send.try', id, sha: shaOf(body), plan })
  for (let tried = 1; tried <= maxTries; tried++)
    try {
      await mailbox.send(body, options)
      ledger.write({ e: 'send.ok', id })
      return
    } catch (error) {
      ledger.write({ e: 'send.fail', id, code: codeOf(error) })
      if (!mailbox.powers.deduplicates || stopping.signal.aborted) return
      await pause(100 * tried)
    }
}

/** Enough waits already: more would only make the end of the run longer. */
async function tooMany(): Promise<boolean> {
  return (await mailbox.approximateCount().catch(() => 0)) > maxWaiting
}

async function produce(): Promise<void> {
  while (!stopping.signal.aborted) {
    const burst = Array.from({ length: Math.ceil(dice.between(0, 5)) }, nextPlan)
    await Promise.all(burst.map(send))
    await pause(dice.between(50, 250))
    while (!stopping.signal.aborted && (await tooMany())) await pause(100)
  }
}

const producing = produce()
process.once('SIGTERM', () => {
  stopping.abort()
  void producing.then(() => mailbox.close()).then(() => process.exit(0))
})
ledger.write({ e: 'ready' })
flushCompileCache()

import { flushCompileCache } from 'node:module'
import { chance } from '../chance.ts'
import { pause } from '../child.ts'
import { shaOf } from '../plan.ts'
import { codeOf } from '../record-store.ts'
import { bugs } from './bugs.ts'
import { beChild, names, openWithRetry } from './child.ts'
import { bytesOf, planHeader, createPlanner, type Plan } from './plan.ts'

/**
 * A producer of the crash test. It records each send before making it, and counts a message as sent
 * only when `send` resolved. Where the broker deduplicates, it repeats failed sends with the same
 * id; elsewhere their outcome is unknown.
 */

const { settings, ledger } = beChild()
const dice = chance(settings.seed)
const nextPlan = createPlanner(dice, settings.bug && bugs[settings.bug].fault)
const mailbox = await openWithRetry(settings.url, names.requests, ledger)
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

/** Limits the backlog: more would only prolong the end of the run. */
async function isBacklogFull(): Promise<boolean> {
  return (await mailbox.approximateCount().catch(() => 0)) > maxWaiting
}

async function produce(): Promise<void> {
  while (!stopping.signal.aborted) {
    const burst = Array.from({ length: Math.ceil(dice.between(0, 5)) }, nextPlan)
    await Promise.all(burst.map(send))
    await pause(dice.between(50, 250))
    while (!stopping.signal.aborted && (await isBacklogFull())) await pause(100)
  }
}

const producing = produce()
process.once('SIGTERM', () => {
  stopping.abort()
  void producing.then(() => mailbox.close()).then(() => process.exit(0))
})
ledger.write({ e: 'ready' })
flushCompileCache()

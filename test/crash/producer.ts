import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { chance } from './chance.ts'
import { beChild, openQueue, pause, ready } from './child.ts'
import { ledgerPath, parseLines, type StopPoint } from './ledger.ts'
import { bytesOf, makePlan, pauserPlan, shaOf, type Plan } from './plan.ts'
import { codeOf } from './record-store.ts'

/**
 * A producer of the crash test. It chooses the ids, records each capture before making it, and
 * counts a letter as stored only when `enqueue` resolved. It repeats the unfinished captures of its
 * predecessor: whether or not they had been written, there must be one letter of each.
 */

/** A request of the parent: a letter whose worker stops itself. */
export interface PauserRequest {
  id: string
  n: number
  point: StopPoint
}

const stopping = new AbortController()
const { settings, ledger } = beChild()
const dice = chance(settings.seed)
const { store, dlq } = await openQueue(settings, ledger, {
  backoff: { kind: 'fixed', delayMs: 20 },
})

const maxTries = 5
const betweenTriesMs = 100
const maxPending = 200

async function capture(
  id: string,
  plan: Plan,
  priority: 'critical' | 'medium' = 'medium',
): Promise<void> {
  const payload = bytesOf(plan)
  const sha = shaOf(payload)
  const error = Object.assign(new Error('connection reset by peer'), { code: 'ECONNRESET' })
  ledger.write({ e: 'capture.try', id, sha, plan })
  for (let tried = 1; tried <= maxTries; tried++) {
    try {
      const { maxRetries } = plan
      const context = { id, maxRetries, priority, contentType: 'application/json' }
      const letter = await dlq.enqueue({ type: 'work', payload }, error, context)
      ledger.write({ e: 'capture.ok', id: letter.id })
      return
    } catch (failed) {
      ledger.write({ e: 'capture.fail', id, code: codeOf(failed) })
      if (stopping.signal.aborted) return
      await pause(betweenTriesMs * tried)
    }
  }
}

/** Captures of the previous process with an unknown outcome. */
function readUnfinished(): Map<string, Plan> {
  const plans = new Map<string, Plan>()
  const path = settings.previous && ledgerPath(settings.dir, settings.previous)
  if (!path || !existsSync(path)) return plans
  for (const line of parseLines(readFileSync(path, 'utf8'))) {
    if (line.e === 'capture.try') plans.set(line.id, line.plan)
    else if (line.e === 'capture.ok') plans.delete(line.id)
  }
  return plans
}

/** Limits the backlog: more would only prolong the end of the run. */
async function isBacklogFull(): Promise<boolean> {
  const tally = await store.tally('state').catch(() => new Map<string, number>())
  return (tally.get('pending') ?? 0) > maxPending
}

async function produce(): Promise<void> {
  await Promise.all([...readUnfinished()].map(([id, plan]) => capture(id, plan)))
  for (let n = Math.floor(dice.between(0, 1000)); !stopping.signal.aborted;) {
    const burst = Array.from({ length: Math.ceil(dice.between(0, 8)) }, () => makePlan(n++, dice))
    await Promise.all(burst.map((plan) => capture(randomUUID(), plan)))
    await pause(dice.between(40, 160))
    while (!stopping.signal.aborted && (await isBacklogFull())) await pause(100)
  }
}

process.on('message', ({ id, n, point }: PauserRequest) => {
  if (!stopping.signal.aborted) void capture(id, pauserPlan(n, point), 'critical')
})
const producing = settings.onDemand ? Promise.resolve() : produce()
ready(ledger, async () => {
  stopping.abort()
  await producing
  await dlq.close()
})

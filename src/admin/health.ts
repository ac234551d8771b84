import type { PausedQueue } from '../letter/paused-queue.ts'
import type { Alert } from '../policy/alert-rule.ts'
import type { SpoolStatus, Store, StoreHealth } from '../store.ts'

export interface Health {
  ok: boolean
  store: StoreHealth
  processor: { running: boolean; active: number }
  /** State of the spool, if there is one. */
  spool?: SpoolStatus
  /** Raised alerts of all processes. */
  alerts: Alert[]
  /** Queues whose letters are not run until a person resumes them. They are no problem. */
  pausedQueues: PausedQueue[]
  /** Descriptions of all problems, for people. */
  problems: string[]
}

export async function readHealth(
  store: Store,
  processor: Health['processor'],
  stuck: { all: boolean; problems: string[] },
  alerts: Alert[],
  spool: (() => Promise<SpoolStatus>) | undefined,
): Promise<Omit<Health, 'pausedQueues'>> {
  const storeHealth = await store.health()
  const raised = alerts.map(({ name, summary }) => `${name}: ${summary}`)
  const problems = [...storeHealth.problems, ...raised, ...stuck.problems]
  const health = {
    ok: storeHealth.ok && !stuck.all,
    store: storeHealth,
    processor,
    alerts,
    problems,
  }
  return spool ? { ...health, spool: await spool() } : health
}

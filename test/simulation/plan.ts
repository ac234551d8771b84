import type { Run } from '../../src/redelivery/run.ts'
import type { Dice } from './dice.ts'
import type { System } from './system.ts'
import type { Setup } from './settings.ts'
import type { SimProcess } from './sim-process.ts'

/** What a letter does when it runs. The payload has its number. */
export interface Plan {
  n: number
  kind: keyof typeof behaviours
  workMs: number
  failures: number
}

const calm = [
  'fine',
  'fine',
  'fine',
  'flaky',
  'flaky',
  'doomed',
  'permanent',
  'odd',
  'refusing',
  'slow',
  'deaf',
  'late',
  'nested',
] as const
const wild = [...calm, 'poison', 'poison', 'pauser', 'pauser'] as const

export function drawPlan(n: number, dice: Dice, setup: Setup): Plan {
  return {
    n,
    kind: dice.pick(setup.faulty ? wild : calm),
    workMs: setup.leaseMs * dice.pick([0, 0.05, 0.3, 1.5]),
    failures: dice.whole(1, 3),
  }
}

/** Runs a letter by its plan. */
export async function perform(
  plan: Plan,
  run: Run,
  process: SimProcess,
  system: System,
): Promise<unknown> {
  return behaviours[plan.kind](plan, run, process, system)
}

type Behaviour = (plan: Plan, run: Run, process: SimProcess, system: System) => Promise<unknown>

const networkError = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' })

/** One error of every kind that the system distinguishes. */
export const errors = {
  network: networkError,
  odd: (): Error => new Error('something odd'),
  permanent: (): Error => Object.assign(new Error('no such thing'), { code: 'ENOSYS' }),
  limited: (): Error =>
    Object.assign(new Error('too many requests'), { status: 429, retryAfterMs: 40 }),
}

const work = (plan: Plan, process: SimProcess): Promise<void> => process.sleep(plan.workMs)
const never = (): Promise<never> => new Promise(() => {})

const behaviours = {
  fine: async (plan, _run, process) => {
    await work(plan, process)
    return 'done'
  },
  flaky: async (plan, _run, process, system) => {
    await work(plan, process)
    if (system.countRuns(plan.n) <= plan.failures) throw networkError()
    return 'done'
  },
  doomed: async (plan, _run, process) => {
    await work(plan, process)
    throw networkError()
  },
  permanent: async (plan, _run, process) => {
    await work(plan, process)
    throw errors.permanent()
  },
  odd: async (plan, _run, process) => {
    await work(plan, process)
    throw errors.odd()
  },
  refusing: async (plan, _run, process) => {
    await work(plan, process)
    return { ok: false, error: networkError() }
  },
  /** Ends only when its signal aborts. */
  slow: async (_plan, run, process, system) => {
    await process.waitForAbort(run.signal)
    system.coverage.record('handler timed out')
    throw run.signal.reason
  },
  /** Ignores its signal, and ends long after its time limit. */
  deaf: async (_plan, _run, process, system) => {
    const { timeoutMs, graceMs, leaseMs } = system.setup
    await process.sleep(timeoutMs + graceMs + 2 * leaseMs)
    return 'done'
  },
  /** Succeeds shortly after its signal aborted. */
  late: async (_plan, run, process, system) => {
    await process.waitForAbort(run.signal)
    await process.sleep(system.setup.graceMs / 2)
    return 'done'
  },
  /** Fails inside a guarded function, which creates no letter of its own there. */
  nested: async (plan, _run, process) => {
    await work(plan, process)
    await process.guarded?.({ nested: plan.n })
    throw networkError()
  },
  /** Kills the process that runs it. */
  poison: async (plan, _run, process, system) => {
    await work(plan, process)
    system.coverage.record('process crashed mid-run')
    process.crash('poison')
    return never()
  },
  /** Pauses its first process for longer than a lease. */
  pauser: async (plan, _run, process, system) => {
    await work(plan, process)
    if (system.countRuns(plan.n) === 1) {
      process.pause(system.setup.leaseMs * 2)
      system.coverage.record('process paused past its lease')
      await process.sleep(0)
    }
    return 'done'
  },
} satisfies Record<string, Behaviour>

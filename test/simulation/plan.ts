import type { Run } from '../../src/redelivery/run.ts'
import type { Dice } from './dice.ts'
import type { House } from './house.ts'
import type { Setup } from './settings.ts'
import type { SimProcess } from './sim-process.ts'

/** What a letter will do to those who run it. Its number travels as the payload. */
export interface Plan {
  n: number
  kind: keyof typeof performances
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
  house: House,
): Promise<unknown> {
  return performances[plan.kind](plan, run, process, house)
}

type Performance = (plan: Plan, run: Run, process: SimProcess, house: House) => Promise<unknown>

const networkError = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' })

/** Errors of every kind that the house tells apart. */
export const errors = {
  network: networkError,
  odd: (): Error => new Error('something odd'),
  permanent: (): Error => Object.assign(new Error('no such thing'), { code: 'ENOSYS' }),
  limited: (): Error =>
    Object.assign(new Error('too many requests'), { status: 429, retryAfterMs: 40 }),
}

const work = (plan: Plan, process: SimProcess): Promise<void> => process.sleep(plan.workMs)
const never = (): Promise<never> => new Promise(() => {})

const performances = {
  fine: async (plan, _run, process) => {
    await work(plan, process)
    return 'done'
  },
  flaky: async (plan, _run, process, house) => {
    await work(plan, process)
    if (house.runsOf(plan.n) <= plan.failures) throw networkError()
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
  /** Never ends by itself, and obeys its signal. */
  slow: async (_plan, run, process, house) => {
    await process.aborted(run.signal)
    house.sightings.see('handler timed out')
    throw run.signal.reason
  },
  /** Does not listen to its signal, and ends long after its time. */
  deaf: async (_plan, _run, process, house) => {
    const { timeoutMs, graceMs, leaseMs } = house.setup
    await process.sleep(timeoutMs + graceMs + 2 * leaseMs)
    return 'done'
  },
  /** Hears its signal, and ends well a moment later. */
  late: async (_plan, run, process, house) => {
    await process.aborted(run.signal)
    await process.sleep(house.setup.graceMs / 2)
    return 'done'
  },
  /** Fails inside a function that is guarded itself: that makes no letter of its own. */
  nested: async (plan, _run, process) => {
    await work(plan, process)
    await process.guarded?.({ nested: plan.n })
    throw networkError()
  },
  /** Ends the process that runs it. */
  poison: async (plan, _run, process, house) => {
    await work(plan, process)
    house.sightings.see('process crashed mid-run')
    process.crash('poison')
    return never()
  },
  /** Its first process stands still for longer than a lease. */
  pauser: async (plan, _run, process, house) => {
    await work(plan, process)
    if (house.runsOf(plan.n) === 1) {
      process.pause(house.setup.leaseMs * 2)
      house.sightings.see('process paused past its lease')
      await process.sleep(0)
    }
    return 'done'
  },
} satisfies Record<string, Performance>

import type { GuardedRun } from '../../src/capture/operation.ts'
import type { Clock } from '../../src/clock/clock.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { isFailedResult } from '../../src/letter/result.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Run } from '../../src/redelivery/run.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import type { Store } from '../../src/store.ts'
import type { Dice } from './dice.ts'
import { Oracle } from './oracle.ts'
import { perform, type Plan } from './plan.ts'
import type { Setup } from './settings.ts'
import { Coverage } from './coverage.ts'
import { SimProcess } from './sim-process.ts'
import { SimStore } from './sim-store.ts'
import { RunObserver } from './run-observer.ts'
import type { Scheduler } from './scheduler.ts'

/** A planted bug: in the shared store, or in the store of each process. */
export interface PlantedBug {
  shared?: (store: Store, clock: Pick<Clock, 'now'>) => Store
  own?: (store: Store) => Store
}

interface SystemOptions {
  scheduler: Scheduler
  dice: Dice
  setup: Setup
  plant: PlantedBug | undefined
}

/** The simulated system: the processes, their shared store, and the checkers. */
export class System {
  readonly scheduler: Scheduler
  readonly dice: Dice
  readonly setup: Setup
  readonly coverage = new Coverage()
  readonly oracle: Oracle
  readonly runObserver: RunObserver
  readonly plans = new Map<number, Plan>()
  readonly shared: Store
  readonly processes: SimProcess[] = []
  healed = false
  /** Clock skew of the store. */
  storeOffsetMs = 0
  readonly #plant: PlantedBug | undefined
  readonly #runs = new Map<number, number>()
  #caller: SimProcess | undefined
  #spawned = 0

  constructor({ scheduler, dice, setup, plant }: SystemOptions) {
    this.scheduler = scheduler
    this.dice = dice
    this.setup = setup
    const now = (): number => this.storeNowMs()
    const clock = {
      now,
      mono: () => scheduler.nowMs,
      random: () => 0.5,
      id: () => '',
      timer: () => () => {},
    }
    const store = memoryStore({ clock })
    this.shared = plant?.shared?.(store, clock) ?? store
    this.#plant = plant
    const storeNowMs = now
    this.oracle = new Oracle({
      scheduler,
      setup,
      shared: this.shared,
      coverage: this.coverage,
      storeNowMs,
    })
    this.runObserver = new RunObserver(this.oracle.ledger)
  }

  storeNowMs(): number {
    const offsetMs =
      this.setup.leaseClock === 'caller' ? this.#caller?.offsetMs : this.storeOffsetMs
    return this.scheduler.wallMs + (offsetMs ?? 0)
  }

  /** Number of runs of letters with this plan. */
  countRuns(n: number): number {
    return this.#runs.get(n) ?? 0
  }

  /** Processes that are alive and not being replaced. */
  liveProcesses(): SimProcess[] {
    return this.processes.filter(({ alive, leaving, dlq }) => alive && !leaving && dlq)
  }

  async spawn(queues: readonly string[] = this.setup.queues): Promise<SimProcess> {
    const { scheduler, setup, dice } = this
    const process: SimProcess = new SimProcess({
      name: `p${++this.#spawned}`,
      handles: queues,
      scheduler,
      dice: dice.fork(),
      offsetMs: this.healed ? 0 : Math.round(dice.between(-1, 1) * setup.skewMs),
      onCrash: () =>
        void scheduler.after(
          setup.leaseMs * dice.between(0.1, 1),
          async () => void (await this.spawn()),
        ),
    })
    this.processes.push(process)
    scheduler.log(
      `${process.name} starts with ${queues.join(', ')}, clock skew ${process.offsetMs} ms`,
    )
    const store = new SimStore({
      scheduler,
      setup,
      dice: dice.fork(),
      caller: process,
      shared: this.shared,
      oracle: this.oracle,
      runObserver: this.runObserver,
      faulty: () => !this.healed,
      reach: () => {
        this.#caller = process
      },
    })
    const dlq = await DeadLetterQueue.open(this.#plant?.own?.(store) ?? store, {
      ...setup.options,
      worker: process.name,
      clock: process.clock,
    })
    dlq.on('*', (event) => this.runObserver.handleEvent(process.name, event))
    for (const queue of queues) this.#handle(dlq, process, queue)
    process.dlq = dlq
    dlq.start()
    process.started = true
    return process
  }

  /** The first queue is guarded; the others have plain handlers. */
  #handle(dlq: DeadLetterQueue, process: SimProcess, queue: string): void {
    if (queue !== this.setup.queues[0]) return dlq.handle(queue, (run) => this.#run(process, run))
    const fn = async (_input: unknown, run: GuardedRun): Promise<unknown> => {
      if (run.letter) return this.#run(process, { ...run, letter: run.letter })
      throw process.firstCallError
    }
    process.guarded = dlq.guard(queue, fn, { rethrow: false })
  }

  async #run(process: SimProcess, run: Run): Promise<unknown> {
    this.runObserver.runStarted(process.name, run)
    const n = numberOf(run.input)
    const known = this.oracle.ledger.letters.get(run.letter.id)
    if (known?.letter.epoch === run.epoch && numberOf(decodePayload(known.letter.payload)) !== n)
      this.scheduler.violate('LOSS', `${known.name} was run with another payload`)
    this.#runs.set(n, this.countRuns(n) + 1)
    const plan = this.plans.get(n)
    if (!plan) return this.scheduler.violate('LOSS', 'a run with a payload that was never captured')
    const startedMs = this.scheduler.nowMs
    const report = (how: 'done' | 'failed'): void =>
      this.runObserver.runEnded(run, how, this.scheduler.nowMs - startedMs)
    try {
      const result = await perform(plan, run, process, this)
      report(isFailedResult(result) ? 'failed' : 'done')
      return result
    } catch (error) {
      report('failed')
      throw error
    }
  }
}

/** The plan number in a payload of any encoding. */
function numberOf(input: unknown): number {
  const value: unknown =
    input instanceof Uint8Array
      ? JSON.parse(Buffer.from(input).toString())
      : typeof input === 'string'
        ? JSON.parse(input)
        : input
  return (value as { n: number }).n
}

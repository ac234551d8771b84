import type { GuardedRun } from '../../src/capture/operation.ts'
import type { Clock } from '../../src/clock/clock.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { isFailedResult } from '../../src/letter/result.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import type { Run } from '../../src/redelivery/run.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import type { Store } from '../../src/store.ts'
import type { Dice } from './dice.ts'
import { Oracle } from './oracle.ts'
import { perform, type Plan } from './plan.ts'
import type { Setup } from './settings.ts'
import { Sightings } from './sightings.ts'
import { SimProcess } from './sim-process.ts'
import { SimStore } from './sim-store.ts'
import { Witness } from './witness.ts'
import type { World } from './world.ts'

/** A bug to be found: in the store that all share, or in what each process makes of it. */
export interface Plant {
  shared?: (store: Store, clock: Pick<Clock, 'now'>) => Store
  own?: (store: Store) => Store
}

interface HouseOptions {
  world: World
  dice: Dice
  setup: Setup
  plant: Plant | undefined
}

/** Everything that runs: the processes, the store that they share, and those who watch. */
export class House {
  readonly world: World
  readonly dice: Dice
  readonly setup: Setup
  readonly sightings = new Sightings()
  readonly oracle: Oracle
  readonly witness: Witness
  readonly plans = new Map<number, Plan>()
  readonly shared: Store
  readonly processes: SimProcess[] = []
  healed = false
  /** How far the store's own clock is off. */
  storeOffsetMs = 0
  readonly #plant: Plant | undefined
  readonly #runs = new Map<number, number>()
  #caller: SimProcess | undefined
  #spawned = 0

  constructor({ world, dice, setup, plant }: HouseOptions) {
    this.world = world
    this.dice = dice
    this.setup = setup
    const now = (): number => this.storeNowMs()
    const clock = {
      now,
      mono: () => world.nowMs,
      random: () => 0.5,
      id: () => '',
      timer: () => () => {},
    }
    const store = memoryStore({ clock })
    this.shared = plant?.shared?.(store, clock) ?? store
    this.#plant = plant
    const storeNowMs = now
    this.oracle = new Oracle({
      world,
      setup,
      shared: this.shared,
      sightings: this.sightings,
      storeNowMs,
    })
    this.witness = new Witness(this.oracle.ledger)
  }

  storeNowMs(): number {
    const offsetMs =
      this.setup.leaseClock === 'caller' ? this.#caller?.offsetMs : this.storeOffsetMs
    return this.world.wallMs + (offsetMs ?? 0)
  }

  /** How often letters of this plan were run. */
  runsOf(n: number): number {
    return this.#runs.get(n) ?? 0
  }

  /** Processes that live and are not on their way out. */
  living(): SimProcess[] {
    return this.processes.filter(({ alive, leaving, dlq }) => alive && !leaving && dlq)
  }

  async spawn(queues: readonly string[] = this.setup.queues): Promise<SimProcess> {
    const { world, setup, dice } = this
    const process: SimProcess = new SimProcess({
      name: `p${++this.#spawned}`,
      handles: queues,
      world,
      dice: dice.fork(),
      offsetMs: this.healed ? 0 : Math.round(dice.between(-1, 1) * setup.skewMs),
      onCrash: () =>
        void world.after(
          setup.leaseMs * dice.between(0.1, 1),
          async () => void (await this.spawn()),
        ),
    })
    this.processes.push(process)
    world.log(
      `${process.name} begins with ${queues.join(', ')}, clock off by ${process.offsetMs} ms`,
    )
    const store = new SimStore({
      world,
      setup,
      dice: dice.fork(),
      caller: process,
      shared: this.shared,
      oracle: this.oracle,
      witness: this.witness,
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
    dlq.on('*', (event) => this.witness.heard(process.name, event))
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
      throw process.doorError
    }
    process.guarded = dlq.guard(queue, fn, { rethrow: false })
  }

  async #run(process: SimProcess, run: Run): Promise<unknown> {
    this.witness.started(process.name, run)
    const n = numberOf(run.input)
    const known = this.oracle.ledger.letters.get(run.letter.id)
    if (known?.letter.epoch === run.epoch && numberOf(decodePayload(known.letter.payload)) !== n)
      this.world.violate('LOSS', `${known.name} was run with another payload`)
    this.#runs.set(n, this.runsOf(n) + 1)
    const plan = this.plans.get(n)
    if (!plan) return this.world.violate('LOSS', `a run with a payload that was never captured`)
    const startedMs = this.world.nowMs
    const tell = (how: 'done' | 'failed'): void =>
      this.witness.ended(run, how, this.world.nowMs - startedMs)
    try {
      const result = await perform(plan, run, process, this)
      tell(isFailedResult(result) ? 'failed' : 'done')
      return result
    } catch (error) {
      tell('failed')
      throw error
    }
  }
}

/** The number in a payload, whatever it is written as. */
function numberOf(input: unknown): number {
  const value: unknown =
    input instanceof Uint8Array
      ? JSON.parse(Buffer.from(input).toString())
      : typeof input === 'string'
        ? JSON.parse(input)
        : input
  return (value as { n: number }).n
}

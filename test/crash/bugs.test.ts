// Each planted bug in the shortest course of events that shows it: several processes in virtual
// time, in one real process. `npm run crash -- --bugs` plants the same bugs among real kills.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { resolve } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/index.ts'
import { bugNames, bugs, plantBug, type BugName } from './bugs.ts'
import { dumpStore } from './dump.ts'
import { readClocks, type Fact, type Line } from './ledger.ts'
import { override } from './override.ts'
import { bytesOf, shaOf, type Plan } from './plan.ts'
import { recordStore } from './record-store.ts'
import { verify, violationKinds, type ViolationKind } from './verify.ts'

const leaseMs = 50
const plan: Plan = { n: 1, kind: 'fine', maxRetries: 6, workMs: 1, pad: '' }
const advance = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

beforeEach(() => {
  vi.useFakeTimers()
  // The bugs wait for random times.
  let draws = 0
  vi.spyOn(Math, 'random').mockImplementation(() => (draws++ * 0.4) % 1)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** A store, and the processes that share it. */
class World {
  readonly #lines: Line[] = []
  readonly #bug: BugName | undefined
  readonly #inner: Store
  #skewMs = 0
  #areDead = false

  constructor(bug: BugName | undefined) {
    this.#bug = bug
    this.#inner = memoryStore({
      clock: { ...systemClock, now: () => systemClock.now() + this.#skewMs },
    })
  }

  /** The store as a process sees it. `skewMs`: how far its clock is ahead with the clock bug. */
  process(name: string, skewMs = 0): Store {
    // Writes that a dead process has not begun never happen.
    const mortal = override(this.#inner, {
      add: (...args) => (this.#areDead ? new Promise(() => {}) : this.#inner.add(...args)),
      claim: (request) => {
        this.#skewMs = this.#bug === 'lease-by-own-clock' ? skewMs : 0
        return this.#inner.claim(request).finally(() => (this.#skewMs = 0))
      },
    })
    const planted = this.#bug ? plantBug(this.#bug, mortal) : mortal
    return recordStore(planted, { write: (fact) => this.#write(name, fact) }, async () => {}).store
  }

  #write(p: string, fact: Fact): void {
    this.#lines.push({ ...readClocks(), p, ...fact })
  }

  async capture(by: Store): Promise<void> {
    const bytes = bytesOf(plan)
    const payload = { bytes, contentType: 'application/json', size: bytes.length, version: 1 }
    const letter = aLetter({ payload, queue: 'work', maxRetries: plan.maxRetries })
    this.#write('producer', { e: 'capture.try', id: letter.id, sha: shaOf(bytes), plan })
    await by.add([letter])
    this.#write('producer', { e: 'capture.ok', id: letter.id })
  }

  /** Ends all processes: calls that have not reached the store never do. */
  kill(): void {
    this.#areDead = true
  }

  /** The violations that the evidence shows. */
  async violations(): Promise<ViolationKind[]> {
    await advance(leaseMs)
    vi.clearAllTimers()
    vi.useRealTimers()
    const dump = await dumpStore(this.#inner)
    const findings = verify({ lines: this.#lines, raw: dump, api: dump, leaseMs })
    return violationKinds.filter((kind) => findings[kind] > 0)
  }
}

async function claim(store: Store, worker: string): Promise<DeadLetter | undefined> {
  return (await store.claim({ worker, limit: 1, leaseMs })).letters[0]
}

async function settle(store: Store, letter: DeadLetter): Promise<void> {
  const at = toTimestamp(systemClock.now())
  await store.apply([resolve(letter, { at, actor: 'worker', guard: 'epoch' })])
}

const courses: Record<BugName, (world: World) => Promise<void>> = {
  /** A worker is paused until another one has taken over, then sends its result. */
  'settle-without-epoch': async (world) => {
    const [a, b] = [world.process('a'), world.process('b')]
    await world.capture(a)
    const late = await claim(a, 'a')
    await advance(leaseMs + 10)
    await claim(b, 'b')
    await advance(1)
    await settle(a, late!)
  },
  'two-statement-claim': async (world) => {
    const [a, b] = [world.process('a'), world.process('b')]
    await world.capture(a)
    const claims = [claim(a, 'a'), claim(b, 'b')]
    await advance(20)
    await Promise.all(claims)
  },
  /** A worker takes over between the two statements of a rescuer. */
  'rescuer-by-id': async (world) => {
    const [a, b, c] = [world.process('a'), world.process('b'), world.process('c')]
    await world.capture(a)
    await claim(a, 'a')
    await advance(leaseMs + 12)
    await claim(b, 'b')
    await advance(leaseMs - 10)
    await claim(c, 'c')
  },
  /** The first worker dies before it counts. */
  'attempts-on-failure': async (world) => {
    const [a, b] = [world.process('a'), world.process('b')]
    await world.capture(a)
    await claim(a, 'a')
    await advance(leaseMs + 10)
    await claim(b, 'b')
  },
  'ack-before-commit': async (world) => {
    await world.capture(world.process('a'))
    world.kill()
  },
  'lease-by-own-clock': async (world) => {
    const [a, b] = [world.process('a'), world.process('b', 1000)]
    await world.capture(a)
    await claim(a, 'a')
    await advance(5)
    await claim(b, 'b')
  },
}

describe('the crash test of a store', () => {
  it.each(bugNames)('catches the planted bug %s', async (bug) => {
    const world = new World(bug)
    await courses[bug](world)
    const found = await world.violations()
    expect(bugs[bug].shows.filter((kind) => found.includes(kind))).not.toEqual([])
  })

  it.each(bugNames)('finds nothing when the store does not have the bug %s', async (bug) => {
    const world = new World(undefined)
    await courses[bug](world)
    // The course ends before the letter does.
    expect((await world.violations()).filter((kind) => kind !== 'stuck')).toEqual([])
  })
})

import * as fc from 'fast-check'
import { expect } from 'vitest'
import { copyStore } from '../src/transfer/copy/copy.ts'
import { priorities, type DeadLetter, type Priority, type State } from '../src/letter/letter.ts'
import { memoryMailbox } from '../src/mailboxes/memory/memory.ts'
import { fixed } from '../src/policy/backoff.ts'
import { DeadLetterQueue } from '../src/queue/queue.ts'
import type { Run } from '../src/redelivery/run.ts'
import type { Lifetime } from '../src/admin/statistics.ts'
import type { Store } from '../src/store.ts'
import { memoryStore } from '../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../src/testing/fake-clock.ts'
import { forbidden, refused } from './a-queue.ts'

const backoffMs = 3_600_000
const maxRetries = 2

type Outcome = 'done' | 'fails' | 'forbidden'

/** A letter of the model. */
interface Known {
  queue: string
  priority: Priority
  state: State
  retries: number
  maxRetries: number
  archivedFrom?: State
  key?: string
}

/** The simplest implementation of the counters: each event adds to its documented counters. */
class Model {
  readonly letters = new Map<string, Known>()
  readonly lifetime: Lifetime = {
    captured: 0,
    occurrences: 0,
    retried: 0,
    resolved: 0,
    rescheduled: 0,
    exhausted: 0,
    parked: 0,
    manuallyRetried: 0,
    reviewed: 0,
    replayed: 0,
    archived: 0,
    restored: 0,
    removed: 0,
    evicted: 0,
  }
  readonly enqueuedByType: Record<string, number> = {}
  readonly enqueuedByPriority: Record<Priority, number> = perPriority()
  readonly successByPriority: Record<Priority, number> = perPriority()
  readonly abandonedByPriority: Record<Priority, number> = perPriority()
  settledRetries = 0
  waits: number[] = []
  maxRetries = 0

  capture(letter: DeadLetter, key?: string): void {
    const { queue, priority, state, retries } = letter
    this.letters.set(letter.id, {
      queue,
      priority,
      state,
      retries,
      maxRetries: letter.maxRetries,
      ...(key === undefined ? {} : { key }),
    })
    this.lifetime.captured++
    this.enqueuedByPriority[priority]++
    this.enqueuedByType[queue] = (this.enqueuedByType[queue] ?? 0) + 1
    this.#recordRetries(retries)
    if (state === 'parked') this.lifetime.parked++
    else this.waits.push(letter.backoffMs)
  }

  /** A person makes the letter due. */
  retry(id: string, counts: 'retry' | 'review' = 'retry'): void {
    const letter = this.letters.get(id)!
    if (letter.state !== 'pending') letter.retries = 0
    letter.state = 'pending'
    this.lifetime.manuallyRetried++
    if (counts === 'review') this.lifetime.reviewed++
  }

  begin(id: string): void {
    const letter = this.letters.get(id)!
    letter.state = 'retrying'
    letter.retries++
    this.lifetime.retried++
  }

  giveBack(id: string): void {
    const letter = this.letters.get(id)!
    letter.state = 'pending'
    letter.retries--
    this.lifetime.retried--
  }

  /** Updates a letter whose run has ended or was reported. */
  end(id: string, outcome: Outcome): void {
    const letter = this.letters.get(id)!
    this.#recordRetries(letter.retries)
    if (outcome === 'done') this.resolve(id)
    else if (outcome === 'forbidden') this.park(id)
    else if (letter.retries >= letter.maxRetries) {
      letter.state = 'exhausted'
      this.lifetime.exhausted++
      this.abandonedByPriority[letter.priority]++
      this.settledRetries += letter.retries
    } else {
      letter.state = 'pending'
      this.lifetime.rescheduled++
    }
  }

  fail(id: string, outcome: Outcome): void {
    const letter = this.letters.get(id)!
    // The claim has counted that run.
    if (letter.state === 'pending') this.begin(id)
    this.end(id, outcome)
  }

  resolve(id: string): void {
    const letter = this.letters.get(id)!
    letter.state = 'resolved'
    this.lifetime.resolved++
    this.successByPriority[letter.priority]++
    this.settledRetries += letter.retries
  }

  park(id: string): void {
    const letter = this.letters.get(id)!
    letter.state = 'parked'
    this.#recordRetries(letter.retries)
    this.lifetime.parked++
  }

  archive(id: string): void {
    const letter = this.letters.get(id)!
    letter.archivedFrom = letter.state
    letter.state = 'archived'
    this.lifetime.archived++
  }

  restore(id: string): void {
    const letter = this.letters.get(id)!
    letter.state = letter.archivedFrom!
    this.lifetime.restored++
  }

  #recordRetries(retries: number): void {
    this.maxRetries = Math.max(this.maxRetries, retries)
  }
}

function perPriority(): Record<Priority, number> {
  return { critical: 0, high: 0, medium: 0, low: 0 }
}

const kinds = [
  'enqueue',
  'enqueue',
  'enqueue parked',
  'enqueue keyed',
  'enqueue again',
  'import',
  'run',
  'run',
  'give back',
  'crash',
  'fail',
  'fail',
  'resolve',
  'park',
  'requeue',
  'review resolve',
  'discard',
  'replay',
  'archive',
  'restore',
  'edit',
  'remove',
] as const

const step = fc.record({
  kind: fc.constantFrom(...kinds),
  pick: fc.nat(1000),
  queue: fc.constantFrom('a', 'b'),
  priority: fc.constantFrom(...priorities),
  outcome: fc.constantFrom<Outcome>('done', 'fails', 'fails', 'forbidden'),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

export interface MetricsBench {
  store: Store
  close(): Promise<void>
}

/**
 * Applies random sequences of counted actions to the public API, and compares the counters with the
 * model.
 */
export async function compareMetrics(
  open: (clock: FakeClock) => Promise<MetricsBench>,
  numRuns: number,
  maxLength = 40,
): Promise<void> {
  const steps = fc.array(step, { maxLength, size: 'max' })
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const clock = fakeClock()
      const bench = await open(clock)
      try {
        await new Driver(bench.store, clock).drive(all)
      } finally {
        await bench.close()
      }
    }),
    { numRuns },
  )
}

class Driver {
  readonly #store: Store
  readonly #clock: FakeClock
  readonly #model = new Model()
  readonly #plans = new Map<string, Outcome | 'hang'>()
  #dlq!: DeadLetterQueue

  constructor(store: Store, clock: FakeClock) {
    this.#store = store
    this.#clock = clock
  }

  async drive(steps: readonly Step[]): Promise<void> {
    const requests = memoryMailbox({ name: 'requests', clock: this.#clock })
    await requests.open()
    this.#dlq = await DeadLetterQueue.open(this.#store, {
      clock: this.#clock,
      backoff: fixed(backoffMs),
      maxRetries,
      breaker: false,
      concurrency: false,
      alerts: false,
      leaseMs: 86_400_000,
      maxReplays: 1000,
      mailboxes: { requests },
    })
    // Imported letters have their own retry policy.
    this.#dlq.on('rescheduled', ({ letter }) => this.#model.waits.push(letter.backoffMs))
    for (const queue of ['a', 'b']) this.#dlq.handle(queue, (run) => this.#handle(run))
    for (const one of steps) await this.#take(one)
    await this.#compare()
    await this.#dlq.stop()
  }

  async #handle({ letter, signal }: Run): Promise<void> {
    const { id } = letter
    this.#model.begin(id)
    const plan = this.#plans.get(id) ?? 'done'
    if (plan === 'hang') {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      this.#model.giveBack(id)
      throw new Error('stopped')
    }
    this.#model.end(id, plan)
    if (plan !== 'done') throw errorOf(plan)
  }

  async #take({ kind, pick, queue, priority, outcome }: Step): Promise<void> {
    const dlq = this.#dlq
    const model = this.#model
    const operation = { type: queue }
    const [id, known] = this.#pick(kind, pick) ?? []
    switch (kind) {
      case 'enqueue':
        return model.capture(await dlq.enqueue(operation, refused(), { priority, maxRetries }))
      case 'enqueue parked':
        return model.capture(await dlq.enqueue(operation, forbidden(), { priority }))
      case 'enqueue keyed': {
        const key = `key ${pick % 2}`
        const isHeld = [...model.letters.values()].some(
          (one) =>
            one.queue === queue &&
            one.key === key &&
            one.state !== 'resolved' &&
            one.state !== 'archived',
        )
        const letter = await dlq.enqueue(operation, refused(), { priority, dedupeKey: key })
        if (isHeld) model.lifetime.occurrences++
        else model.capture(letter, key)
        return
      }
      case 'import':
        return this.#import(queue, priority, pick)
    }
    if (id === undefined || known === undefined) return
    switch (kind) {
      case 'enqueue again':
        await dlq.enqueue({ type: known.queue }, refused(), { id })
        return
      case 'run':
        return this.#run(id, outcome)
      case 'give back':
        return this.#run(id, 'hang')
      case 'crash':
        return this.#crash(id, 1 + (pick % 4), outcome)
      case 'fail':
        model.fail(id, outcome === 'done' ? 'fails' : outcome)
        return void (await dlq.fail(id, errorOf(outcome)))
      case 'resolve':
        model.resolve(id)
        return void (await dlq.resolve(id))
      case 'park':
        model.park(id)
        return void (await dlq.park(id))
      case 'requeue':
        model.retry(id, 'review')
        await dlq.review(id, { decision: 'requeue', by: 'mia' })
        // The letter must not stay due: it would run without a planned step.
        return this.#run(id, outcome)
      case 'review resolve':
        model.lifetime.reviewed++
        model.resolve(id)
        return void (await dlq.review(id, { decision: 'resolve', by: 'mia' }))
      case 'discard':
        model.lifetime.reviewed++
        model.archive(id)
        return void (await dlq.review(id, { decision: 'discard', by: 'mia' }))
      case 'replay':
        known.state = 'resolved'
        model.lifetime.replayed++
        return void (await dlq.replay(id, 'mia', { to: 'requests' }))
      case 'archive':
        model.archive(id)
        return void (await dlq.archive(id))
      case 'restore': {
        model.restore(id)
        await dlq.restore(id)
        return known.state === 'pending' ? this.#run(id, outcome) : undefined
      }
      case 'edit':
        known.priority = priority
        return void (await dlq.edit(id, { priority, reason: 'r', by: 'mia' }))
      case 'remove':
        model.letters.delete(id)
        model.lifetime.removed++
        return void (await dlq.remove(id))
    }
  }

  /** Picks a letter for which the step is possible. */
  #pick(kind: Step['kind'], pick: number): [string, Known] | undefined {
    const open: State[] = ['pending', 'exhausted', 'parked']
    const legal: Partial<Record<Step['kind'], State[]>> = {
      'enqueue again': ['pending', 'exhausted', 'parked', 'resolved', 'archived'],
      fail: ['pending'],
      resolve: open,
      park: ['pending', 'exhausted'],
      requeue: ['parked', 'exhausted'],
      'review resolve': ['parked', 'exhausted'],
      discard: ['parked', 'exhausted'],
      archive: ['pending', 'resolved', 'exhausted', 'parked'],
      restore: ['archived'],
      remove: ['pending', 'resolved', 'exhausted', 'parked', 'archived'],
    }
    const states = legal[kind] ?? open
    const all = [...this.#model.letters].filter(([, { state }]) => states.includes(state))
    return all[pick % Math.max(1, all.length)]
  }

  async #run(id: string, plan: Outcome | 'hang'): Promise<void> {
    const dlq = this.#dlq
    this.#plans.set(id, plan)
    this.#model.retry(id)
    await dlq.retry(id)
    await this.#work(id, plan)
    this.#plans.delete(id)
  }

  /** Lets the queue work until the letter has run; the stop releases a run that hangs. */
  async #work(id: string, plan: Outcome | 'hang'): Promise<void> {
    const dlq = this.#dlq
    const seen = Promise.withResolvers<void>()
    const types = plan === 'hang' ? (['started'] as const) : (['changed'] as const)
    const offs = types.map((type) =>
      dlq.on(type, ({ letter }) => {
        if (letter.id === id) seen.resolve()
      }),
    )
    dlq.start()
    await this.#until(seen.promise)
    for (const off of offs) off()
    await this.#until(dlq.stop({ drainMs: plan === 'hang' ? 0 : 10_000 }))
    // A released letter is due immediately, and would run in the next work step.
    if (plan === 'hang') this.#plans.delete(id)
  }

  /** Workers claim the letter and die. */
  async #crash(id: string, times: number, outcome: Outcome): Promise<void> {
    const model = this.#model
    model.retry(id)
    await this.#dlq.retry(id)
    for (let crash = 0; crash < times; crash++) {
      const claim = { worker: 'mortal', limit: 100, leaseMs: 100 }
      for (const letter of (await this.#store.claim(claim)).letters) model.begin(letter.id)
      await this.#clock.advance(101)
    }
    const left = [...model.letters].filter(([, { state }]) => state === 'retrying')
    for (const [one, known] of left) {
      this.#plans.set(one, outcome)
      // The next claim would exceed the limit, which is detected before the run.
      if (known.retries < known.maxRetries) continue
      known.retries = known.maxRetries
      model.park(one)
    }
    for (const [one] of left) await this.#settled(one)
    for (const [one] of left) this.#plans.delete(one)
  }

  async #settled(id: string): Promise<void> {
    const now = await this.#dlq.get(id)
    if (now?.state === 'retrying') await this.#work(id, 'done')
  }

  async #import(queue: string, priority: Priority, pick: number): Promise<void> {
    const other = await DeadLetterQueue.open('memory:', {
      clock: this.#clock,
      backoff: fixed(backoffMs),
      maxRetries,
    })
    const error = pick % 2 === 0 ? refused() : forbidden()
    const { id } = await other.enqueue({ type: queue }, error, { priority })
    if (pick % 3 === 0) await other.resolve(id)
    const text = await other.exportOperations()
    await other.close()
    for (const expected of [1, 0]) {
      const { added, problems } = await this.#dlq.importOperations(text)
      expect({ added, problems }).toEqual({ added: expected, problems: [] })
    }
    const [imported] = (await this.#dlq.find({ ids: [...(await this.#newIds())], payload: true }))
      .items
    this.#model.capture(imported!)
  }

  async #newIds(): Promise<string[]> {
    const { items } = await this.#dlq.find({
      state: ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived'],
      limit: 1000,
    })
    return items.map(({ id }) => id).filter((id) => !this.#model.letters.has(id))
  }

  /** Fires the due timers until the work is done. The clock does not advance meanwhile. */
  async #until(promise: Promise<unknown>): Promise<void> {
    const run = { done: false }
    const end = promise.finally(() => (run.done = true))
    while (!run.done) await this.#clock.advance(0)
    await end
  }

  async #compare(): Promise<void> {
    const { lifetime, ...model } = this.#model
    const sum = model.waits.reduce((all, ms) => all + ms, 0)
    const settled = lifetime.resolved + lifetime.exhausted
    const expected = {
      totalEnqueued: lifetime.captured,
      totalRetried: lifetime.retried,
      totalSuccesses: lifetime.resolved,
      totalAbandoned: lifetime.exhausted,
      totalManualReviews: lifetime.parked,
      totalReplayed: lifetime.replayed,
      enqueuedByType: model.enqueuedByType,
      enqueuedByPriority: model.enqueuedByPriority,
      successByPriority: model.successByPriority,
      abandonedByPriority: model.abandonedByPriority,
      avgRetryCount: settled > 0 ? model.settledRetries / settled : 0,
      avgBackoffMs: model.waits.length > 0 ? sum / model.waits.length : 0,
      maxRetryCount: model.maxRetries,
    }
    const stats = await this.#dlq.stats()
    expect(stats.lifetime).toEqual(lifetime)
    expect(await this.#dlq.metrics()).toMatchObject(expected)
    const copy = memoryStore({ clock: this.#clock })
    await copy.open()
    await copyStore(this.#store, copy, { source: 'metrics', clock: this.#clock })
    const copied = await DeadLetterQueue.open(copy, { clock: this.#clock })
    expect(await copied.metrics()).toMatchObject(expected)
    await copied.close()
  }
}

function errorOf(outcome: Outcome): Error {
  return outcome === 'forbidden' ? forbidden() : refused()
}

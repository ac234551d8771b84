import type { Dice } from './dice.ts'
import type { Trace } from './trace.ts'

/** Something that can die or stand still, and with it what it waits for. */
export interface Owner {
  alive: boolean
  /** Its events wait until then. */
  pausedUntilMs: number
}

interface Event {
  atMs: number
  /** Decides between events of one moment. */
  tie: number
  run: (() => void | Promise<void>) | undefined
  owner: Owner | undefined
}

/** A promise of the house that did not hold. */
export interface Violation {
  invariant: string
  what: string
}

/** A run that does more than this has lost its way: nothing that is drawn here needs as much. */
const maxEvents = 150_000

/** 1 January 2026: where wall clocks begin. */
const startOfWall = Date.UTC(2026, 0, 1)

/**
 * Virtual time: one list of events by moment, and chance decides between those of one moment. Between two events every
 * promise that can settle does, so a run depends on its seed alone.
 */
export class World {
  readonly trace: Trace
  readonly #dice: Dice
  readonly #heap: Event[] = []
  #nowMs = 0
  #wallShiftMs = 0
  #events = 0
  #violation: Violation | undefined

  constructor(dice: Dice, trace: Trace) {
    this.#dice = dice
    this.trace = trace
  }

  /** Monotonic, from 0. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** The right time of day, from which the clocks of processes may differ. */
  get wallMs(): number {
    return startOfWall + this.#nowMs + this.#wallShiftMs
  }

  get events(): number {
    return this.#events
  }

  get violation(): Violation | undefined {
    return this.#violation
  }

  /** Makes all wall clocks jump forwards at once: a cheap way to wait for what is due in an hour. */
  skipWall(ms: number): void {
    this.#wallShiftMs += ms
  }

  log(text: string): void {
    this.trace.write(this.#nowMs, text)
  }

  /** The first violation ends the run. */
  violate(invariant: string, what: string): void {
    if (this.#violation) return
    this.#violation = { invariant, what }
    this.log(`VIOLATION ${invariant}: ${what}`)
  }

  /** Runs this later. Returns a function that calls it off. */
  after(ms: number, run: () => void | Promise<void>, owner?: Owner): () => void {
    if (!(ms >= 0)) this.violate('UP', `a wait of ${ms} ms`)
    const event: Event = { atMs: this.#nowMs + ms, tie: this.#dice.next(), run, owner }
    this.#push(event)
    return () => {
      event.run = undefined
    }
  }

  /** Lets this much time pass. False when a violation ended the run. */
  async pass(ms: number): Promise<boolean> {
    const endMs = this.#nowMs + ms
    await turn()
    for (
      let next = this.#heap[0];
      next && next.atMs <= endMs && !this.#violation;
      next = this.#heap[0]
    ) {
      this.#pop()
      await this.#play(next)
    }
    this.#nowMs = Math.max(this.#nowMs, endMs)
    return !this.#violation
  }

  async #play(event: Event): Promise<void> {
    const { run, owner } = event
    if (!run || owner?.alive === false) return
    this.#nowMs = Math.max(this.#nowMs, event.atMs)
    if (owner && owner.pausedUntilMs > this.#nowMs) {
      event.atMs = owner.pausedUntilMs
      this.#push(event)
      return
    }
    if (++this.#events > maxEvents) this.violate('SPIN', `more than ${maxEvents} events`)
    await run()
    await turn()
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(event, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie)
}

/** One turn of the event loop runs every promise callback that is ready, and those that these make ready. */
function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

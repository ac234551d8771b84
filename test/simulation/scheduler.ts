import type { Dice } from './dice.ts'
import type { Trace } from './trace.ts'

/** An owner of events that can die or pause, together with its events. */
export interface Owner {
  alive: boolean
  /** Its events are delayed until then. */
  pausedUntilMs: number
}

interface Event {
  atMs: number
  /** Orders events at the same time. */
  tie: number
  run: (() => void | Promise<void>) | undefined
  owner: Owner | undefined
}

/** A violated guarantee of the system. */
export interface Violation {
  invariant: string
  what: string
}

/** Upper bound of events per run; no drawn run needs as many. */
const maxEvents = 150_000

/** 1 January 2026: the start of wall clocks. */
const startOfWall = Date.UTC(2026, 0, 1)

/**
 * Virtual time: a queue of events ordered by time, with a random order of simultaneous events.
 * Between two events every promise that can settle does, so a run depends on its seed alone.
 */
export class Scheduler {
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

  /** The correct wall time. The clocks of processes may differ from it. */
  get wallMs(): number {
    return startOfWall + this.#nowMs + this.#wallShiftMs
  }

  get events(): number {
    return this.#events
  }

  get violation(): Violation | undefined {
    return this.#violation
  }

  /** Moves all wall clocks forwards: a cheap way to wait for distant due times. */
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

  /** Schedules a function. Returns a function that cancels it. */
  after(ms: number, run: () => void | Promise<void>, owner?: Owner): () => void {
    if (!(ms >= 0)) this.violate('UP', `a wait of ${ms} ms`)
    const event: Event = { atMs: this.#nowMs + ms, tie: this.#dice.next(), run, owner }
    this.#push(event)
    return () => {
      event.run = undefined
    }
  }

  /** Advances the time. False when a violation ended the run. */
  async advance(ms: number): Promise<boolean> {
    const endMs = this.#nowMs + ms
    await settlePromises()
    for (
      let next = this.#heap[0];
      next && next.atMs <= endMs && !this.#violation;
      next = this.#heap[0]
    ) {
      this.#pop()
      await this.#runEvent(next)
    }
    this.#nowMs = Math.max(this.#nowMs, endMs)
    return !this.#violation
  }

  async #runEvent(event: Event): Promise<void> {
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
    await settlePromises()
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

/**
 * One turn of the event loop runs every ready promise callback, and those that become ready by it.
 */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

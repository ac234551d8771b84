import type { Clock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import type { DatabaseOptions } from './database.ts'
import { giveBack, takeLine, type Line } from './line.ts'
import type { Call, Report, Verb, Verbs } from './protocol.ts'

/** Batches that may be on their way at once. The second is there when the first is done, so that the thread need not wait. */
const maxBatches = 2

/** How much one batch carries at the most, in letters, changes and ids, so that no call waits for long. */
const maxBatchWeight = 512

interface Waiting {
  resolve: (value: never) => void
  reject: (error: RedriveError) => void
}

interface Queued {
  call: Call
  weight: number
}

/**
 * The caller's end of the thread that keeps the file. While a batch is on its way, calls gather; then all that gathered
 * goes as the next one. So one call alone costs one commit, and many at once share one.
 */
export interface Thread {
  call<V extends Verb>(verb: V, ask: Verbs[V]['ask'], weight?: number): Promise<Verbs[V]['answer']>
  /** Waits for every call, then closes the file. */
  end(): Promise<void>
}

export function sqliteThread(options: DatabaseOptions, clock: Clock, wake: () => void): Thread {
  return new SqliteThread(options, clock, wake)
}

class SqliteThread implements Thread {
  readonly #options: DatabaseOptions
  readonly #clock: Clock
  readonly #wake: () => void
  #line: Line | undefined
  #queue: Queued[] = []
  readonly #waiting = new Map<number, Waiting>()
  #batches = 0
  #number = 0
  #idle: (() => void)[] = []

  constructor(options: DatabaseOptions, clock: Clock, wake: () => void) {
    this.#options = options
    this.#clock = clock
    this.#wake = wake
  }

  call<V extends Verb>(verb: V, ask: Verbs[V]['ask'], weight = 1): Promise<Verbs[V]['answer']> {
    return new Promise((resolve, reject) => {
      const number = ++this.#number
      this.#waiting.set(number, { resolve, reject })
      // Calls of one turn go together.
      if (this.#queue.length === 0) queueMicrotask(() => this.#send())
      this.#queue.push({ call: [number, verb, ask] as unknown as Call, weight })
    })
  }

  async end(): Promise<void> {
    if (this.#isBusy()) await new Promise<void>((resolve) => this.#idle.push(resolve))
    const line = this.#line
    if (!line) return
    this.#line = undefined
    line.hold(true)
    await new Promise<void>((resolve) => {
      line.listen({ hear: () => resolve(giveBack(line)), lost: () => resolve() })
      line.send({ kind: 'close' })
    })
  }

  #send(): void {
    while (this.#queue.length > 0 && this.#batches < maxBatches) {
      const line = (this.#line ??= this.#start())
      // While calls are out the process must not end; when none is, the thread must not keep it.
      if (this.#batches === 0) line.hold(true)
      this.#post(line, this.#gather())
    }
  }

  /** What cannot cross to the thread, such as a function, is the mistake of one call and must not take others along. */
  #post(line: Line, calls: Call[]): void {
    try {
      line.send({ kind: 'batch', nowMs: this.#clock.now(), calls })
      this.#batches += 1
    } catch (cause) {
      if (calls.length > 1) for (const call of calls) this.#post(line, [call])
      else this.#refuse(calls[0]!, cause)
    }
  }

  #refuse([number, verb]: Call, cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `sqlite: what was given to ${verb} cannot be kept: ${why}`
    this.#waiting.get(number)?.reject(new RedriveError('INVALID_INPUT', message, { cause }))
    this.#waiting.delete(number)
    this.#rest()
  }

  /**
   * What waits, but no more than half of all calls that are out: while the thread writes one half, the callers of the
   * other hear their answers and come with the next. If all went at once, thread and callers would take turns. Looks at
   * counts weigh nothing, and go together.
   */
  #gather(): Call[] {
    const light = this.#queue.every((queued) => queued.weight === 0)
    const share = light ? 1 : 0.5
    const most = Math.min(this.#queue.length, Math.ceil(this.#waiting.size * share))
    let weight = 0
    let count = 0
    while (count < most && weight < maxBatchWeight) weight += this.#queue[count++]!.weight
    return this.#queue.splice(0, count).map(({ call }) => call)
  }

  #start(): Line {
    const line = takeLine()
    line.listen({ hear: (report) => this.#hear(report), lost: (cause) => this.#lost(cause) })
    line.send({ kind: 'file', options: this.#options })
    return line
  }

  #hear({ answers, done, woke }: Report): void {
    if (done) this.#batches -= 1
    if (woke) this.#wake()
    for (const [number, value, trouble] of answers) {
      const waiting = this.#waiting.get(number)
      this.#waiting.delete(number)
      if (trouble) waiting?.reject(new RedriveError(trouble.code, trouble.message))
      else waiting?.resolve(value as never)
    }
    this.#send()
    this.#rest()
  }

  /** The thread is gone. What was on its way is done or lost, nobody knows; what still waits goes to a new thread. */
  #lost(cause: unknown): void {
    this.#line = undefined
    this.#batches = 0
    const queued = new Set(this.#queue.map(({ call }) => call[0]))
    const message = `sqlite ${this.#options.path}: the thread that keeps the file died; what was on its way may or may not be kept`
    for (const [number, { reject }] of this.#waiting) {
      if (queued.has(number)) continue
      this.#waiting.delete(number)
      reject(new RedriveError('STORE_UNAVAILABLE', message, { cause }))
    }
    this.#send()
    this.#rest()
  }

  /** Reports may overtake each other, so the last answer need not be the last report. */
  #isBusy(): boolean {
    return this.#waiting.size > 0 || this.#batches > 0
  }

  #rest(): void {
    if (this.#isBusy()) return
    this.#line?.hold(false)
    for (const tell of this.#idle.splice(0)) tell()
  }
}

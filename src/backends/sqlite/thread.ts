import { RedriveError } from '../../errors.ts'
import { loaded } from './batch.ts'
import { takeLine, type Line, type Program } from './channel.ts'
import type { AnyCall, Report, VerbTable } from './protocol.ts'
import { whyNotStarted } from './errors.ts'

/** Batches that may be on their way at once. The second is there when the first is done, so that the thread need not wait. */
const maxInFlight = 2

/** How much one batch carries at the most, so that no call waits for long. */
const maxBatchWeight = 512

export interface ThreadOptions<R extends Report> {
  program: Program
  /** What the thread is told when it gets the file. */
  file: unknown
  now: () => number
  /**
   * About how long a caller is busy with a call of weight 1: with its answer, and until it comes with the next. While what
   * all callers do takes longer than a commit, they come in two halves, one of which is busy while the thread writes
   * for the other. On a slower disk they come together, for that halves the commits.
   */
  callerMs: number
  /** Hears each report before its answers are given. */
  hear: (report: R) => void
  /** What calls fail with that were on their way when the thread died. */
  lost: (cause: unknown) => RedriveError
}

interface Waiting {
  weight: number
  resolve: (value: never) => void
  reject: (error: RedriveError) => void
}

/**
 * The caller's end of the thread that keeps a file. While a batch is on its way, calls gather; then all that gathered
 * goes as the next one. So one call alone costs one commit, and many at once share one.
 */
export interface Thread<V extends VerbTable<V>> {
  /** `weight`: for how many calls it counts; 0 for a look at counts, and 1 unless said. `bytes`: what goes along with what is asked. */
  call<K extends keyof V>(
    verb: K,
    ask: V[K]['ask'],
    weight?: number,
    bytes?: Uint8Array,
  ): Promise<V[K]['answer']>
  /** Waits for every call, then closes the file. */
  end(): Promise<void>
}

export function openThread<V extends VerbTable<V>, R extends Report>(
  options: ThreadOptions<R>,
): Thread<V> {
  return new FileThread<V, R>(options)
}

class FileThread<V extends VerbTable<V>, R extends Report> implements Thread<V> {
  readonly #options: ThreadOptions<R>
  #line: Line | undefined
  #queue: AnyCall[] = []
  readonly #waiting = new Map<number, Waiting>()
  #lastNumber = 0
  /** Of all that wait. */
  #weight = 0
  #batches = 0
  /** How long the last two commits took. One of them may have been held up by a checkpoint. */
  #commitMs: [number, number] = [0, 0]
  #idle: (() => void)[] = []

  constructor(options: ThreadOptions<R>) {
    this.#options = options
  }

  call<K extends keyof V>(
    verb: K,
    ask: V[K]['ask'],
    weight = 1,
    bytes?: Uint8Array,
  ): Promise<V[K]['answer']> {
    return new Promise((resolve, reject) => {
      const number = ++this.#lastNumber
      this.#waiting.set(number, { weight, resolve, reject })
      this.#weight += weight
      // Calls of one turn go together.
      if (this.#queue.length === 0) queueMicrotask(() => this.#send())
      this.#queue.push(bytes ? [number, verb, ask, bytes] : [number, verb, ask])
    })
  }

  async end(): Promise<void> {
    if (this.#isBusy()) await new Promise<void>((resolve) => this.#idle.push(resolve))
    const line = this.#line
    if (!line) return
    this.#line = undefined
    line.hold(true)
    await new Promise<void>((resolve) => {
      line.listen({ hear: () => resolve(line.giveBack()), lost: () => resolve() })
      line.send({ kind: 'close' })
    })
  }

  #send(): void {
    while (this.#queue.length > 0 && this.#batches < maxInFlight) {
      const line = (this.#line ??= this.#start())
      // While calls are out the process must not end; when none is, the thread must not keep it.
      if (this.#batches === 0) line.hold(true)
      this.#post(line, this.#gather())
    }
  }

  /** What cannot cross to the thread, such as a function, is the mistake of one call and must not take others along. */
  #post(line: Line, calls: AnyCall[]): void {
    try {
      line.send(loaded(this.#options.now(), calls))
      this.#batches += 1
    } catch (cause) {
      if (calls.length > 1) for (const call of calls) this.#post(line, [call])
      else this.#refuse(calls[0]!, cause)
    }
  }

  #refuse([number, verb]: AnyCall, cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `sqlite: what was given to ${String(verb)} cannot be kept: ${why}`
    this.#over(number)?.reject(new RedriveError('INVALID_INPUT', message, { cause }))
    this.#rest()
  }

  /** What is queued, but no more than one batch may have of all that wait. Looks at counts weigh nothing, and go along. */
  #gather(): AnyCall[] {
    const most = Math.min(maxBatchWeight, this.#weight * this.#share())
    let weight = 0
    let count = 0
    for (const [number] of this.#queue) {
      const own = this.#waiting.get(number)!.weight
      if (own > 0 && weight >= most) break
      weight += own
      count += 1
    }
    return this.#queue.splice(0, count)
  }

  #share(): number {
    return Math.min(...this.#commitMs) < this.#weight * this.#options.callerMs ? 0.5 : 1
  }

  /** Whoever waits for this call, and does so no more. */
  #over(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number)
    this.#waiting.delete(number)
    this.#weight -= waiting?.weight ?? 0
    return waiting
  }

  #start(): Line {
    const { program, file } = this.#options
    const line = takeLine(program)
    line.listen({ hear: (report) => this.#hear(report as R), lost: (cause) => this.#lost(cause) })
    line.send({ kind: 'file', options: file })
    return line
  }

  #hear(report: R): void {
    if (!report.aside) this.#batches -= 1
    if (report.commitMs !== undefined) this.#commitMs = [this.#commitMs[1], report.commitMs]
    this.#options.hear(report)
    const { answers, troubles = [] } = report
    for (let at = 0; at < answers.length; at += 2)
      this.#over(answers[at] as number)?.resolve(answers[at + 1] as never)
    for (const [number, { code, message }] of troubles)
      this.#over(number)?.reject(new RedriveError(code, message))
    this.#send()
    this.#rest()
  }

  /** The thread is gone. What was on its way is done or lost, nobody knows; what still waits goes to a new thread. */
  #lost(cause: unknown): void {
    this.#line = undefined
    this.#batches = 0
    const queued = new Set(this.#queue.map(([number]) => number))
    for (const number of [...this.#waiting.keys()])
      if (!queued.has(number)) this.#over(number)?.reject(this.#lossOf(cause))
    this.#send()
    this.#rest()
  }

  #lossOf(cause: unknown): RedriveError {
    const why = whyNotStarted(cause)
    return why === undefined
      ? this.#options.lost(cause)
      : new RedriveError('INVALID_CONFIG', why, { cause })
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

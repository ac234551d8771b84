import { resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { nextTurn, type Clock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import { gatherer, type Gatherer } from '../../kept/gather.ts'
import { watchers, type Watchers } from '../../kept/watchers.ts'
import { packBatch, unpackReport, type Crossing } from './crossing.ts'
import type { Batch, Call, Report, Verb, Verbs } from './protocol.ts'

/** Batches that may be on their way at once. The second is there when the first is done, so that the thread need not wait. */
const maxBatches = 2
const maxWeight = 512
/** So many bytes weigh as much as a call without any. */
const bytesOfWeight = 16 * 1024

/** What the mailboxes of one file share: its thread, and who waits for news. */
export interface MailFile {
  /** `bytes`: how much it carries to the thread. */
  call<V extends Verb>(verb: V, ask: Verbs[V]['ask'], bytes?: number): Promise<Verbs[V]['answer']>
  /** Who hears that messages of this mailbox may have become visible. */
  waiting(mailbox: number): Watchers
  /** Who hears how many messages of this mailbox were removed because they were kept too long. */
  onExpired(mailbox: number, hear: (count: number) => void): () => void
  /** Closes the file when nobody else uses it. Once for each `useFile`. */
  leave(): Promise<void>
}

/** Files that are open in this process, by path. Another clock stands for another process. */
const open = new WeakMap<Clock, Map<string, ThreadFile>>()

/** The file of this path, which all mailboxes of this process share. */
export function useFile(path: string, clock: Clock): MailFile {
  const full = resolve(path)
  const files = open.get(clock) ?? new Map<string, ThreadFile>()
  open.set(clock, files)
  const file = files.get(full) ?? new ThreadFile(full, clock, () => files.delete(full))
  files.set(full, file)
  file.users += 1
  return file
}

interface Listening {
  worker: Worker
  waiting: { calls: Call[]; done: (report: Report) => void }[]
}

class ThreadFile implements MailFile {
  users = 0
  readonly #path: string
  readonly #clock: Clock
  readonly #forget: () => void
  readonly #calls: Gatherer<Call, unknown>
  readonly #watchers = new Map<number, Watchers>()
  readonly #expired = new Map<number, Set<(count: number) => void>>()
  #thread: Listening | undefined

  constructor(path: string, clock: Clock, forget: () => void) {
    this.#path = path
    this.#clock = clock
    this.#forget = forget
    this.#calls = gatherer({ maxBatches, maxWeight }, (calls) => this.#carry(calls))
  }

  call<V extends Verb>(verb: V, ask: Verbs[V]['ask'], bytes = 0): Promise<Verbs[V]['answer']> {
    const call = { verb, ask } as Call
    return this.#calls.call(call, 1 + bytes / bytesOfWeight) as Promise<Verbs[V]['answer']>
  }

  waiting(mailbox: number): Watchers {
    const found = this.#watchers.get(mailbox) ?? watchers()
    this.#watchers.set(mailbox, found)
    return found
  }

  onExpired(mailbox: number, hear: (count: number) => void): () => void {
    const all = this.#expired.get(mailbox) ?? new Set()
    this.#expired.set(mailbox, all)
    all.add(hear)
    return () => void all.delete(hear)
  }

  async leave(): Promise<void> {
    this.users -= 1
    if (this.users > 0) return
    this.#forget()
    await this.#calls.idle()
    const thread = this.#thread
    if (!thread) return
    this.#thread = undefined
    thread.worker.ref()
    await new Promise<void>((done) => {
      thread.worker.once('exit', () => done())
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
      thread.worker.postMessage(null)
    })
  }

  async #carry(calls: Call[]): Promise<{ value: unknown }[]> {
    const { answers, expired } = await this.#post({ nowMs: Math.floor(this.#clock.now()), calls })
    for (const [mailbox, count] of expired)
      for (const hear of this.#expired.get(mailbox) ?? []) hear(count)
    // Node reads a port until it is empty: busy callers and a quick thread would never let it go on to timers and sockets.
    await nextTurn()
    if (!Array.isArray(answers)) throw new RedriveError(answers.code, answers.message)
    return answers.map((value) => ({ value }))
  }

  #post(batch: Batch): Promise<Report> {
    const thread = (this.#thread ??= this.#start())
    // While calls are out the process must not end; when none is, the thread must not keep it.
    if (thread.waiting.length === 0) thread.worker.ref()
    return new Promise((done) => {
      const crossing = packBatch(batch)
      thread.waiting.push({ calls: batch.calls, done })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
      thread.worker.postMessage(crossing, [crossing.bytes.buffer])
    })
  }

  #start(): Listening {
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js'
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: { path: this.#path },
      execArgv: [],
      name: 'redrive-mailboxes',
    })
    const thread: Listening = { worker, waiting: [] }
    worker.on('message', (crossing: Crossing) => {
      const first = thread.waiting.shift()
      if (thread.waiting.length === 0) worker.unref()
      first?.done(unpackReport(crossing, first.calls))
    })
    let why = ''
    worker.on('error', (error) => (why = ` (${error instanceof Error ? error.message : 'error'})`))
    worker.once('exit', () => this.#lost(thread, why))
    return thread
  }

  /** The thread is gone. What was on its way is done or lost, nobody knows; what comes next goes to a new thread. */
  #lost(thread: Listening, why: string): void {
    if (this.#thread === thread) this.#thread = undefined
    const message = `sqlite ${this.#path}: the thread that keeps the file died; what was on its way may or may not be done${why}`
    for (const { done } of thread.waiting.splice(0))
      done({ answers: { code: 'MAILBOX_UNAVAILABLE', message }, expired: [] })
  }
}

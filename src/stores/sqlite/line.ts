import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads'
import type { Message, Report } from './protocol.ts'

/**
 * A running thread and the way to talk to it. It does not keep the process alive, unless `hold` says that something is
 * on its way.
 */
export interface Line {
  /** Sends a message and rings the bell that the thread sleeps on. */
  send(message: Message): void
  hold(held: boolean): void
  /** Who hears what the thread says, and who hears that it is gone and why. Null: nobody any more. */
  listen(listener: LineListener | null): void
}

export interface LineListener {
  hear(report: Report): void
  lost(cause: unknown): void
}

/** Threads without a file. Waking one is far cheaper than starting one, which tests that open many stores feel. */
const resting: Line[] = []
const maxResting = 2

/** A thread that is ready for a file. */
export function takeLine(): Line {
  return resting.pop() ?? new ThreadLine()
}

/** Gives back a thread that has closed its file. */
export function giveBack(line: Line): void {
  line.listen(null)
  line.hold(false)
  if (resting.length < maxResting) resting.push(line)
  else line.send({ kind: 'end' })
}

class ThreadLine implements Line {
  readonly #port: MessagePort
  readonly #bell: Int32Array
  #listener: LineListener | null = null

  constructor() {
    const { port1, port2 } = new MessageChannel()
    const bell = new SharedArrayBuffer(4)
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js'
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: { port: port2, bell },
      transferList: [port2],
      execArgv: [],
      name: 'redrive-sqlite',
    })
    this.#port = port1
    this.#bell = new Int32Array(bell)
    worker.unref()
    port1.on('message', (report: Report) => this.#listener?.hear(report))
    port1.unref()
    let cause: unknown
    worker.on('error', (error) => (cause = error))
    worker.once('exit', () => this.#lost(cause))
  }

  send(message: Message): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    this.#port.postMessage(message)
    Atomics.add(this.#bell, 0, 1)
    Atomics.notify(this.#bell, 0)
  }

  hold(held: boolean): void {
    if (held) this.#port.ref()
    else this.#port.unref()
  }

  listen(listener: LineListener | null): void {
    this.#listener = listener
  }

  #lost(cause: unknown): void {
    this.#port.close()
    const at = resting.indexOf(this)
    if (at !== -1) resting.splice(at, 1)
    this.#listener?.lost(cause)
  }
}

import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads'
import type { Message, Report, ThreadData } from './protocol.ts'

/** What runs in a thread. */
export interface Program {
  file: URL
  name: string
}

/** The `worker` beside a module, as it is built and as it is written. */
export function workerBeside(module: string, name: string): Program {
  return { file: new URL(module.endsWith('.ts') ? './worker.ts' : './worker.js', module), name }
}

/**
 * A running thread and the way to talk to it. It does not keep the process alive, unless `hold` says that something is
 * on its way.
 */
export interface Line {
  /** Sends a message and rings the bell that the thread sleeps on. */
  send(message: Message): void
  hold(held: boolean): void
  /** Who hears what the thread says, not always in the order in which it was said, and who hears that it is gone and why. Null: nobody any more. */
  listen(listener: LineListener | null): void
  /** For whoever needs the thread no more, and has had its file closed. */
  giveBack(): void
}

interface LineListener {
  hear(report: Report): void
  lost(cause: unknown): void
}

/** Threads without a file, by program. Waking one is far cheaper than starting one, which tests that open many files feel. */
const resting = new Map<Program, ThreadLine[]>()
const maxResting = 2

/** A thread that is ready for a file. */
export function takeLine(program: Program): Line {
  return resting.get(program)?.pop() ?? new ThreadLine(program)
}

/**
 * By how many ports the thread reports, one after the other. Node reads a port until it is empty; if the answer to what a
 * report sets off came by the same port, busy callers would never let the event loop go on to timers and sockets. More
 * than one for each batch that can be out is enough.
 */
const portCount = 3

class ThreadLine implements Line {
  readonly #program: Program
  readonly #worker: Worker
  readonly #ports: MessagePort[]
  readonly #bell: Int32Array
  #listener: LineListener | null = null

  constructor(program: Program) {
    const channels = Array.from({ length: portCount }, () => new MessageChannel())
    const ports = channels.map(({ port2 }) => port2)
    const bell = new SharedArrayBuffer(4)
    const data: ThreadData = { ports, bell }
    const worker = new Worker(program.file, {
      workerData: data,
      transferList: ports,
      execArgv: [],
      name: program.name,
    })
    this.#program = program
    this.#ports = channels.map(({ port1 }) => port1)
    this.#bell = new Int32Array(bell)
    this.#worker = worker
    worker.unref()
    for (const port of this.#ports) {
      port.on('message', (report: Report) => this.#listener?.hear(report))
      port.unref()
    }
    let cause: unknown
    worker.on('error', (error) => (cause = error))
    worker.once('exit', () => this.#lost(cause))
  }

  send(message: Message): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    this.#ports[0]!.postMessage(message)
    Atomics.add(this.#bell, 0, 1)
    Atomics.notify(this.#bell, 0)
  }

  /** By the thread and not by a port: should it die, its end must still be heard, or its callers would wait for ever. */
  hold(held: boolean): void {
    if (held) this.#worker.ref()
    else this.#worker.unref()
  }

  listen(listener: LineListener | null): void {
    this.#listener = listener
  }

  giveBack(): void {
    this.listen(null)
    this.hold(false)
    const others = resting.get(this.#program) ?? []
    resting.set(this.#program, others)
    if (others.length < maxResting) others.push(this)
    else this.send({ kind: 'end' })
  }

  #lost(cause: unknown): void {
    for (const port of this.#ports) port.close()
    const others = resting.get(this.#program) ?? []
    const at = others.indexOf(this)
    if (at !== -1) others.splice(at, 1)
    this.#listener?.lost(cause)
  }
}

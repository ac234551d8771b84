import { Worker } from 'node:worker_threads'
import { nextTurn } from '../../clock/clock.ts'
import type { Message, Report } from './protocol.ts'

/** What runs in a thread. */
export interface Program {
  file: URL
  name: string
}

/** The file `worker` in the folder of a module, compiled or as source. */
export function workerBeside(module: string, name: string): Program {
  return { file: new URL(module.endsWith('.ts') ? './worker.ts' : './worker.js', module), name }
}

interface ChannelListener {
  receive(report: Report): void
  /** The thread has died. */
  lose(cause: unknown): void
}

/** Idle threads by program. Reusing one is much cheaper than starting one. */
const idle = new Map<Program, Channel[]>()
const maxIdle = 2

/** A running thread. It keeps the process alive only while it is held. */
export class Channel {
  readonly #program: Program
  readonly #worker: Worker
  #listener: ChannelListener | undefined

  /** An idle thread, or a new one. */
  static take(program: Program): Channel {
    return idle.get(program)?.pop() ?? new Channel(program)
  }

  private constructor(program: Program) {
    this.#program = program
    this.#worker = new Worker(program.file, { execArgv: [], name: program.name })
    this.#worker.unref()
    // Node reads a port until it is empty. Without the turn, the reports to what a report sets off
    // would be read in the same go, and busy callers would starve timers and sockets.
    this.#worker.on('message', (report: Report) => {
      void nextTurn().then(() => this.#listener?.receive(report))
    })
    let cause: unknown
    this.#worker.on('error', (error) => (cause = error))
    this.#worker.once('exit', () => void nextTurn().then(() => this.#lose(cause)))
  }

  listen(listener: ChannelListener): void {
    this.#listener = listener
  }

  send(message: Message): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage(message)
  }

  hold(isHeld: boolean): void {
    if (isHeld) this.#worker.ref()
    else this.#worker.unref()
  }

  /** Returns the thread for reuse. Its file must be closed. */
  release(): void {
    this.#listener = undefined
    this.hold(false)
    const others = idle.get(this.#program) ?? []
    idle.set(this.#program, others)
    if (others.length < maxIdle) others.push(this)
    else this.send({ kind: 'end' })
  }

  #lose(cause: unknown): void {
    const others = idle.get(this.#program) ?? []
    idle.set(
      this.#program,
      others.filter((other) => other !== this),
    )
    this.#listener?.lose(cause)
  }
}

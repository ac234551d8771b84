// A thread without a file, in which every call is a long one: it is answered by the next step.
import type { AnyCall, Report } from '../../../src/backends/sqlite/protocol.ts'
import { serve, type FileHandler } from '../../../src/backends/sqlite/serve.ts'

class Stepping implements FileHandler {
  readonly #report: (report: Report) => void
  #left: number[] = []

  constructor(report: (report: Report) => void) {
    this.#report = report
  }

  get isBusy(): boolean {
    return this.#left.length > 0
  }

  run(_nowMs: number, calls: AnyCall[]): void {
    this.#left.push(...calls.map(([id]) => id))
  }

  step(): void {
    this.#report({ results: [[this.#left.shift()!, 'done']], errors: [], events: [], isDone: true })
  }

  close(): void {}
}

serve((_options, report) => new Stepping(report))

// A thread without a file. Calls answer with the size of their batch; `flushed` is answered when what is unflushed was flushed, and `left` says
// whether the keeper before was closed with something that was not.
import type { AnyCall, Report } from '../../../src/backends/sqlite/protocol.ts'
import { serve, type Keeper } from '../../../src/backends/sqlite/serve.ts'

let left = false

class Counting implements Keeper {
  unflushed = false
  readonly #commitMs: number
  readonly #report: (said: Report) => void
  #waiting: number[] = []

  constructor(commitMs: number, report: (said: Report) => void) {
    this.#commitMs = commitMs
    this.#report = report
  }

  run(_nowMs: number, calls: AnyCall[]): void {
    const waiting = calls.filter(([, verb]) => verb === 'flushed').map(([number]) => number)
    this.#waiting.push(...waiting)
    this.unflushed ||= calls.some(([, verb]) => verb === 'flushed' || verb === 'write')
    const answers = calls.filter(([, verb]) => verb !== 'flushed')
    this.#report({
      answers: answers.flatMap(([number, verb]) => [number, verb === 'left' ? left : calls.length]),
      commitMs: this.#commitMs,
    })
  }

  flush(): void {
    this.unflushed = false
    const answers = this.#waiting.splice(0).flatMap((number) => [number, 'flushed'])
    this.#report({ answers, aside: true })
  }

  close(): void {
    left = this.unflushed
  }
}

serve((options, report) => new Counting(options as number, report))

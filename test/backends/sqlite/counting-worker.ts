// A thread without a file. `size` returns the size of its batch, `flushed` returns after the next
// flush, and `left` tells whether the last file was closed with something unflushed.
import type { AnyCall, Report } from '../../../src/backends/sqlite/protocol.ts'
import { serve, type FileHandler } from '../../../src/backends/sqlite/serve.ts'

let left = false

class Counting implements FileHandler {
  isUnflushed = false
  readonly #report: (report: Report) => void
  #waiting: number[] = []

  constructor(report: (report: Report) => void) {
    this.#report = report
  }

  run(_nowMs: number, calls: AnyCall[]): void {
    const results: Report['results'] = []
    for (const [id, method] of calls) {
      this.isUnflushed ||= method === 'flushed' || method === 'write'
      if (method === 'flushed') this.#waiting.push(id)
      else results.push([id, method === 'left' ? left : calls.length])
    }
    this.#report({ results, errors: [], events: [], isDone: true })
  }

  flush(): void {
    this.isUnflushed = false
    const results = this.#waiting.splice(0).map((id): [number, unknown] => [id, 'flushed'])
    this.#report({ results, errors: [], events: [], isDone: false })
  }

  close(): void {
    left = this.isUnflushed
  }
}

serve((_options, report) => new Counting(report))

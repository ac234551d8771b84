// A reporter of vitest, whose own time limits cannot end a worker that is blocked. It names a file
// in which no test has ended for minutes, and later ends the run.
import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { endProcess, processesOf } from '../../test/process-table.ts'

const namedAfterMs = 3 * 60_000
const endedAfterMs = 12 * 60_000

interface Running {
  lastMs: number
  test: string
  isNamed: boolean
}

const nameOf = (moduleId: string): string => relative(process.cwd(), moduleId)

// oxlint-disable-next-line no-default-export -- vitest expects it
export default class StalledFiles implements Reporter {
  readonly #running = new Map<string, Running>()
  #timer: NodeJS.Timeout | undefined

  onTestModuleStart({ moduleId }: TestModule): void {
    this.#timer ??= setInterval(() => this.#look(), 5_000).unref()
    this.#running.set(moduleId, { lastMs: performance.now(), test: 'none yet', isNamed: false })
  }

  onTestCaseReady(test: TestCase): void {
    this.#note(test)
  }

  onTestCaseResult(test: TestCase): void {
    this.#note(test)
  }

  onTestModuleEnd({ moduleId }: TestModule): void {
    this.#running.delete(moduleId)
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer)
  }

  #note({ module, fullName }: TestCase): void {
    const running = this.#running.get(module.moduleId)
    if (!running) return
    running.lastMs = performance.now()
    running.test = fullName
  }

  #look(): void {
    for (const [moduleId, running] of this.#running) {
      const silentMs = performance.now() - running.lastMs
      if (silentMs < namedAfterMs) continue
      const minutes = Math.floor(silentMs / 60_000)
      const message = `${nameOf(moduleId)} stalls: no test has ended for ${minutes} minutes; the last one was: ${running.test}`
      if (!running.isNamed) console.error(message)
      running.isNamed = true
      if (silentMs > endedAfterMs) this.#endRun(message)
    }
  }

  #endRun(message: string): void {
    console.error(`${message}. The run ends here.`)
    // The worker may be blocked, so that it would not end by itself.
    for (const pid of processesOf(process.env['REDRIVE_TEST_RUN']!)) endProcess(pid)
    process.exit(1)
  }
}

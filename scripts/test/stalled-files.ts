// A reporter of vitest, whose own time limits cannot end a worker that is blocked. When no test
// file has ended for a long time, this names the files that still run, and ends the run.
import { spawnSync } from 'node:child_process'
import { relative } from 'node:path'

const limitMs = 15 * 60_000

// oxlint-disable-next-line no-default-export -- vitest expects it
export default class StalledFiles {
  #running = new Set()
  #timer

  onTestModuleStart({ moduleId }) {
    this.#running.add(relative(process.cwd(), moduleId))
    this.#wait()
  }

  onTestModuleEnd({ moduleId }) {
    this.#running.delete(relative(process.cwd(), moduleId))
    this.#wait()
  }

  onTestRunEnd() {
    clearTimeout(this.#timer)
  }

  #wait() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const files = [...this.#running].join(', ')
      console.error(`No test file has ended for ${limitMs / 60_000} minutes. Running: ${files}`)
      spawnSync('pkill', ['-KILL', '-P', String(process.pid)])
      process.exit(1)
    }, limitMs)
  }
}

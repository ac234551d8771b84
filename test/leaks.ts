// Runs before each test file. A file must end what it has started: a process that is left would
// have the output of the run open, so that the run never ends, and would slow down later files.
import { spawnSync } from 'node:child_process'
import { relative } from 'node:path'
import { afterAll, expect } from 'vitest'
import { commandLine, until } from '../scripts/servers/machine.ts'
import { cleanUpFile } from './after-file.ts'
import { processesOf } from './process-table.ts'

// Vitest ends the process of a stalled test file with this signal.
process.once('SIGTERM', () => {
  spawnSync('pkill', ['-KILL', '-P', String(process.pid)])
  process.exit()
})

// Processes inherit this name, also those that a process of the file has started and left.
const file = relative(process.cwd(), expect.getState().testPath!)
process.env['REDRIVE_TEST_FILE'] = file

const secondsToExit = 10

// Hooks run in reverse order: this one is the last of the file.
afterAll(
  async () => {
    const left = (): number[] => processesOf(process.env['REDRIVE_TEST_RUN']!, file)
    try {
      await until('processes', () => left().length === 0, secondsToExit)
    } catch {
      const commands = left().map((pid) => `${pid} ${commandLine(pid)}`)
      for (const pid of left()) kill(pid)
      if (commands.length > 0)
        throw new Error(`${file} has left processes:\n${commands.join('\n')}`)
    }
  },
  (secondsToExit + 10) * 1000,
)

// Runs after the hooks of the file itself.
afterAll(cleanUpFile)

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

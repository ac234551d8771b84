// Runs before each test file. A file must end what it has started: a process that is left would
// have the output of the run open, so that the run never ends, and would slow down later files.
import { relative } from 'node:path'
import { afterAll, beforeEach, expect } from 'vitest'
import { commandLine, until } from '../scripts/servers/machine.ts'
import { cleanUpFile } from './after-file.ts'
import './end-with-worker.ts'
import { endProcess, originOf, processesOf } from './process-table.ts'

// Processes inherit these names, also those that a process of the file has started and left.
const file = relative(process.cwd(), expect.getState().testPath!)
process.env['REDRIVE_TEST_FILE'] = file
delete process.env['REDRIVE_TEST_NAME']
beforeEach(({ task }) => {
  process.env['REDRIVE_TEST_NAME'] = task.name
})

const secondsToExit = 10
const left = (): number[] => processesOf(process.env['REDRIVE_TEST_RUN']!, file)

// Hooks run in reverse order: this one is the last of the file.
afterAll(
  async () => {
    const isEmpty = (): boolean => left().length === 0
    const ended = await until('the processes ended', isEmpty, secondsToExit).then(
      () => true,
      () => false,
    )
    if (ended) return
    const commands = left().map((pid) => `${originOf(pid)}: ${pid} ${commandLine(pid)}`)
    for (const pid of left()) endProcess(pid)
    throw new Error(`these processes were left:\n${commands.join('\n')}`)
  },
  (secondsToExit + 20) * 1000,
)

// Runs after the hooks of the file itself, and before the hook above.
afterAll(cleanUpFile)

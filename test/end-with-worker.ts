import { endProcess, processesOf } from './process-table.ts'

// Vitest ends the worker of a run that is stopped with this signal. A worker loads this once.
process.once('SIGTERM', () => {
  const { REDRIVE_TEST_RUN: run, REDRIVE_TEST_FILE: file } = process.env
  for (const pid of processesOf(run!, file)) endProcess(pid)
  process.exit()
})

import { readdirSync, readFileSync } from 'node:fs'

/** The environment of a process when it started. Empty if it has ended or is not ours. */
function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  } catch {
    return []
  }
}

/**
 * The processes that the tests of a run have started, directly or not: of one test file, or of all.
 * Empty where the system has no /proc.
 */
export function processesOf(run: string, file?: string): number[] {
  let pids: number[]
  try {
    pids = readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid)
  } catch {
    return []
  }
  return pids.filter((pid) => {
    const environment = environmentOf(pid)
    if (!environment.includes(`REDRIVE_TEST_RUN=${run}`)) return false
    return environment.some((entry) =>
      file === undefined
        ? entry.startsWith('REDRIVE_TEST_FILE=')
        : entry === `REDRIVE_TEST_FILE=${file}`,
    )
  })
}

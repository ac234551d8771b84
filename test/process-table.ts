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
 * The processes of a test run apart from this one: those that a test file has started, directly or
 * not, or all. Empty where the system has no /proc.
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
  const marks = [`REDRIVE_TEST_RUN=${run}`, ...(file ? [`REDRIVE_TEST_FILE=${file}`] : [])]
  return pids.filter((pid) => {
    const environment = environmentOf(pid)
    return marks.every((mark) => environment.includes(mark))
  })
}

/** The test file and the test that started a process. */
export function originOf(pid: number): string {
  const environment = environmentOf(pid)
  const read = (name: string): string | undefined =>
    environment.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1)
  const file = read('REDRIVE_TEST_FILE') ?? 'no test file'
  const test = read('REDRIVE_TEST_NAME')
  return test ? `${file} > ${test}` : file
}

export function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

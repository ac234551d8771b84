// The running servers: a state file that tests read, and a lock against concurrent starts.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { home, isAlive, until, type Process } from './machine.ts'

/** A server that was started from this checkout. It is ready once `url` is set. */
export interface Running {
  readonly ports: readonly number[]
  readonly processes: readonly Process[]
  readonly log: string
  readonly url?: string
  /** A test run has started it, and the last test run stops it. */
  readonly forTests: boolean
}

export type State = Record<string, Running>

const file = join(home, 'servers.json')

export function readState(): State {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as State
  } catch {
    return {}
  }
}

export function updateState(name: string, running: Running | undefined): void {
  const { [name]: _, ...others } = readState()
  mkdirSync(home, { recursive: true })
  writeFileSync(
    `${file}.new`,
    JSON.stringify(running ? { ...others, [name]: running } : others, null, 2),
  )
  renameSync(`${file}.new`, file)
}

/** Whether all processes of the server are alive. */
export const isRunning = (running: Running | undefined): running is Running =>
  running !== undefined && running.processes.length > 0 && running.processes.every(isAlive)

/** Runs one command at a time per checkout. The lock of a dead process is taken over. */
export async function withLock<T>(work: () => Promise<T>): Promise<T> {
  const lock = join(home, 'lock')
  const holder = (): Process | undefined => {
    try {
      return { pid: Number(readFileSync(join(lock, 'pid'), 'utf8')), mark: 'node' }
    } catch {
      return undefined
    }
  }
  mkdirSync(home, { recursive: true })
  let unreadable = 0
  const take = (): boolean => {
    try {
      mkdirSync(lock)
      writeFileSync(join(lock, 'pid'), String(process.pid))
      return true
    } catch {
      const by = holder()
      unreadable = by ? 0 : unreadable + 1
      if ((by && !isAlive(by)) || unreadable > 20) rmSync(lock, { recursive: true, force: true })
      return false
    }
  }
  await until(`${lock} was not released`, take, 600)
  try {
    return await work()
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}

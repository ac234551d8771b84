import { spawn, type ChildProcess } from '../processes.ts'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import { Tokens } from '../../src/server/tokens.ts'
import { pause } from '../crash/child.ts'

export interface ServerSettings {
  store: string
  /** Where the server writes its log, and the spool of a store on a server. */
  folder: string
  /** Settings in the form key=value. */
  set?: readonly string[]
  /** A module that changes the server, such as a planted bug. */
  preload?: URL
  /** Options of Node, such as --cpu-prof. */
  nodeOptions?: readonly string[]
}

/** A server in a process of its own. */
export interface ServerProcess {
  url: string
  /** Resident memory. Linux only. */
  memoryBytes(): number
  /** CPU time of all threads so far. Linux only. */
  cpuMs(): number
  /** Sends a signal and resolves with the exit code; null: it was killed. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>
  /** What the server has logged about unexpected errors. */
  errors(): string[]
}

const program = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
/** Generous for a busy machine: a server that cannot start ends before. */
const startMs = 180_000
/** The unit of CPU times in /proc. */
const clockTickMs = 10

/** Starts `redrive serve`. */
export function startServer(settings: ServerSettings): Promise<ServerProcess> {
  const { store, folder, set = [], preload, nodeOptions = [] } = settings
  return startProcess(folder, [
    ...nodeOptions,
    ...(preload ? ['--import', preload.href] : []),
    program,
    'serve',
    '--store',
    store,
    '--port',
    '0',
    ...set.flatMap((assignment) => ['--set', assignment]),
  ])
}

/** Starts a program that logs the URL that it listens on. */
export async function startProcess(folder: string, args: string[]): Promise<ServerProcess> {
  const logFile = join(folder, 'server.log')
  const log = openSync(logFile, 'a')
  const skippedBytes = readFileSync(logFile).length
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', log, log] })
  closeSync(log)
  const exited = once(child, 'exit') as Promise<[number | null]>
  const readLog = (): string => readFileSync(logFile).subarray(skippedBytes).toString()
  const url = await waitForUrl(child, readLog)
  return {
    url,
    memoryBytes: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) * 1024
    },
    cpuMs: () => {
      // The fields after the name of the program, which is in parentheses.
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return (Number(fields[11]) + Number(fields[12])) * clockTickMs
    },
    end: async (signal) => {
      child.kill(signal)
      return (await exited)[0]
    },
    errors: () =>
      readLog()
        .split('\n')
        .filter((line) => /"message":"(request failed|error)"|^\w*Error\b/.test(line)),
  }
}

async function waitForUrl(child: ChildProcess, readLog: () => string): Promise<string> {
  const untilMs = performance.now() + startMs
  for (;;) {
    const [, url] = /"url":"(http:[^"]+)"/.exec(readLog()) ?? []
    if (url !== undefined) return url
    const hasExited = child.exitCode !== null || child.signalCode !== null
    if (hasExited || performance.now() > untilMs) {
      child.kill('SIGKILL')
      throw new Error(`the server did not start:\n${readLog().slice(-2000)}`)
    }
    await pause(20)
  }
}

/** Creates a token in the store, before its server starts. */
export async function createToken(storeUrl: string): Promise<string> {
  const store = await connect(storeUrl, systemClock)
  await store.open()
  try {
    const tokens = new Tokens({ store, clock: systemClock })
    const created = await tokens.create({ name: 'load', role: 'admin', createdBy: 'test' })
    return created.token
  } finally {
    await store.close()
  }
}

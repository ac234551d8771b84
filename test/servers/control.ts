// Starts, stops, kills and pauses a private server.
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import {
  childrenOf,
  commandLine,
  dataHome,
  isAlive,
  until,
  type Command,
  type Process,
} from '../../scripts/servers/machine.ts'
import { spawn, type ChildProcess } from '../processes.ts'

/** Shutdown modes of PostgreSQL. Other servers have one mode only. */
export type StopMode = 'smart' | 'fast' | 'immediate'

export interface PrivateServer {
  readonly url: string
  readonly port: number
  /** The folder with its data. */
  readonly folder: string
  /** Starts the server again on the same port, with the same data. Resolves once it answers. */
  readonly start: () => Promise<void>
  /** Stops the server gracefully; resolves once it has exited. */
  readonly stop: (mode?: StopMode) => Promise<void>
  /** Kills the server and its processes, like a crash; resolves once they are gone. */
  readonly kill9: () => Promise<void>
  /** Freezes all processes of the server: connections stay open, and nothing answers. */
  readonly pause: () => void
  readonly resume: () => void
  /** Kills the server and removes its folder. */
  readonly remove: () => Promise<void>
}

export interface Kind {
  /** Number of ports; clients use the first. Default: 1. */
  readonly ports?: number
  /** Creates the data folder. */
  readonly prepare: (folder: string) => void
  readonly command: (ports: readonly number[], folder: string) => Command
  /** A helper process, started once before the server and not affected by kill or pause. */
  readonly beside?: (ports: readonly number[], folder: string) => Command
  /**
   * Checks that the server on the port uses this data folder: another test may have taken the port.
   */
  readonly isOurs: (ports: readonly number[], folder: string) => Promise<boolean>
  readonly url: (port: number) => string
  readonly signals: Readonly<Record<StopMode, NodeJS.Signals>>
}

/** Start timeout of the slowest server on a busy machine. */
const secondsToStart = 60

function launch({ file, args, account, environment }: Command, log: string): ChildProcess {
  const out = openSync(log, 'a')
  const env = { ...process.env, ...environment }
  const born = spawn(file, args, { ...account, cwd: '/', env, stdio: ['ignore', out, out] })
  closeSync(out)
  return born
}

const isLive = (child: ChildProcess | undefined): child is ChildProcess =>
  child !== undefined && child.exitCode === null && !child.signalCode

/**
 * Signals a server and its children. The server is frozen first, so that it cannot start new ones.
 */
function signalAll({ pid }: ChildProcess, name: NodeJS.Signals): Process[] {
  const sent: Process[] = []
  const send = (to: number, signal: NodeJS.Signals): void => {
    const [mark] = commandLine(to).split(' ')
    try {
      process.kill(to, signal)
      // A zombie process has no command line.
      if (mark) sent.push({ pid: to, mark })
    } catch {
      // The process has already exited.
    }
  }
  if (name !== 'SIGCONT') send(pid!, 'SIGSTOP')
  for (const child of childrenOf(pid!)) send(child, name)
  send(pid!, name)
  return sent
}

async function anyPorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  for (const server of servers) server.close()
  await Promise.all(servers.map((server) => once(server, 'close')))
  return ports
}

/** Removes the folders of test runs that were killed before they could. */
function sweep(): void {
  for (const name of readdirSync(dataHome())) {
    const pid = Number(/^private-(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isAlive({ pid, mark: 'node' }))
      rmSync(join(dataHome(), name), { recursive: true, force: true })
  }
}

/** Creates a server in a new folder, on free ports. */
export async function begin(kind: Kind): Promise<PrivateServer> {
  sweep()
  // Not in the temp folder: the user of the server must have access.
  const home = mkdtempSync(join(dataHome(), `private-${process.pid}-`))
  chmodSync(home, 0o755)
  try {
    kind.prepare(join(home, 'data'))
    for (let tries = 1; ; tries += 1) {
      const { server, end } = control(kind, home, await anyPorts(kind.ports ?? 1))
      try {
        await server.start()
        return server
      } catch (error) {
        await end()
        if (tries === 3) throw error
      }
    }
  } catch (error) {
    rmSync(home, { recursive: true, force: true })
    throw error
  }
}

/** The server, and a function that also stops its helper process. */
interface Controlled {
  readonly server: PrivateServer
  readonly end: () => Promise<void>
}

function control(kind: Kind, home: string, ports: readonly number[]): Controlled {
  const folder = join(home, 'data')
  const log = join(home, 'log')
  const port = ports[0]!
  let child: ChildProcess | undefined
  let beside: ChildProcess | undefined

  const start = async (): Promise<void> => {
    if (isLive(child)) return
    if (kind.beside && !isLive(beside)) beside = launch(kind.beside(ports, folder), log)
    const command = kind.command(ports, folder)
    child = launch(command, log)
    const isOurs = async (): Promise<boolean> => {
      if (!isLive(child))
        throw new Error(`${command.file} ended: ${readFileSync(log, 'utf8').slice(-2000)}`)
      return kind.isOurs(ports, folder).catch(() => false)
    }
    await until(`${command.file} did not answer on port ${port}`, isOurs, secondsToStart)
  }

  const ended = async (
    target: ChildProcess | undefined,
    send: (child: ChildProcess) => void,
  ): Promise<void> => {
    if (!isLive(target)) return
    const gone = once(target, 'exit')
    send(target)
    await gone
  }

  const kill = async (target: ChildProcess | undefined): Promise<void> => {
    let killed: Process[] = []
    await ended(target, (child) => {
      killed = signalAll(child, 'SIGKILL')
    })
    await until('the killed processes did not end', () => !killed.some(isAlive), 10)
  }

  const end = async (): Promise<void> => {
    await kill(child)
    await kill(beside)
  }

  const server: PrivateServer = {
    url: kind.url(port),
    port,
    folder,
    start,
    stop: (mode = 'fast') =>
      ended(child, (child) => {
        signalAll(child, 'SIGCONT')
        child.kill(kind.signals[mode])
      }),
    kill9: () => kill(child),
    pause: () => {
      if (isLive(child)) signalAll(child, 'SIGSTOP')
    },
    resume: () => {
      if (isLive(child)) signalAll(child, 'SIGCONT')
    },
    remove: async () => {
      await end()
      rmSync(home, { recursive: true, force: true })
    },
  }
  return { server, end }
}

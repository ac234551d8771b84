// How a private server is started, stopped, killed and paused.
import { spawn, type ChildProcess } from 'node:child_process'
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
  findProgram,
  isAlive,
  until,
  type Command,
  type Process,
} from '../../scripts/servers/machine.ts'

/** How a server is told to end: PostgreSQL's own words. The others make no difference. */
export type StopMode = 'smart' | 'fast' | 'immediate'

export interface PrivateServer {
  readonly url: string
  readonly port: number
  /** Starts it again on the same port, with the same data. Resolves once it answers. */
  readonly start: () => Promise<void>
  /** Ends it in order; resolves once it is gone. */
  readonly stop: (mode?: StopMode) => Promise<void>
  /** Ends it and all of its processes at once, as a crash would; resolves once they are gone. */
  readonly kill9: () => Promise<void>
  /** Freezes all of its processes: connections stay open, and nothing answers. */
  readonly pause: () => void
  readonly resume: () => void
  /** Kills it and removes its folder. */
  readonly remove: () => Promise<void>
}

export interface Kind {
  /** How many ports it needs, one unless told; clients use the first. */
  readonly ports?: number
  /** Makes the data folder. */
  readonly prepare: (folder: string) => void
  readonly command: (ports: readonly number[], folder: string) => Command
  /** A process that it needs beside itself. It is there from the first start on, and no kill or pause meets it. */
  readonly beside?: (ports: readonly number[], folder: string) => Command
  /** Asks whoever answers whether this is its data folder: another test may have taken the port before us. */
  readonly isOurs: (ports: readonly number[], folder: string) => Promise<boolean>
  readonly url: (port: number) => string
  readonly signals: Readonly<Record<StopMode, NodeJS.Signals>>
}

/** A busy machine may need this long for the slowest of them. */
const secondsToStart = 60

const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) signalAll(child, 'SIGKILL')
})

/** On Linux, a server dies with the test process even if that one is killed and can clean up nothing. */
function tied(): string[] {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv') : undefined
  return setpriv ? [setpriv, '--pdeathsig', 'KILL', '--'] : []
}

/** Starts a process that ends with ours at the latest. */
function bear({ file, args, account, environment }: Command, log: string): ChildProcess {
  const out = openSync(log, 'a')
  const [first, ...rest] = [...tied(), file, ...args]
  const env = { ...process.env, ...environment }
  const born = spawn(first!, rest, { ...account, cwd: '/', env, stdio: ['ignore', out, out] })
  closeSync(out)
  children.add(born)
  born.once('exit', () => children.delete(born))
  return born
}

const lives = (child: ChildProcess | undefined): child is ChildProcess =>
  child !== undefined && child.exitCode === null && !child.signalCode

/** Signals a server and its own processes. It is frozen first, so that it cannot make new ones meanwhile. */
function signalAll({ pid }: ChildProcess, name: NodeJS.Signals): Process[] {
  const sent: Process[] = []
  const send = (to: number, signal: NodeJS.Signals): void => {
    const [mark] = commandLine(to).split(' ')
    try {
      process.kill(to, signal)
      // What has ended already, and waits to be noticed, has no command line.
      if (mark) sent.push({ pid: to, mark })
    } catch {
      // It is gone already.
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

/** Makes a server in a folder of its own, on ports that nobody has. */
export async function begin(kind: Kind): Promise<PrivateServer> {
  sweep()
  // Not below the temp folder: the user that runs the server must be able to reach it.
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

/** The server, and a way to end it with what is beside it. */
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
    if (lives(child)) return
    if (kind.beside && !lives(beside)) beside = bear(kind.beside(ports, folder), log)
    const command = kind.command(ports, folder)
    child = bear(command, log)
    const isOurs = async (): Promise<boolean> => {
      if (!lives(child))
        throw new Error(`${command.file} ended: ${readFileSync(log, 'utf8').slice(-2000)}`)
      return kind.isOurs(ports, folder).catch(() => false)
    }
    await until(`${command.file} did not answer on port ${port}`, isOurs, secondsToStart)
  }

  const ended = async (
    target: ChildProcess | undefined,
    send: (child: ChildProcess) => void,
  ): Promise<void> => {
    if (!lives(target)) return
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
    start,
    stop: (mode = 'fast') =>
      ended(child, (child) => {
        signalAll(child, 'SIGCONT')
        child.kill(kind.signals[mode])
      }),
    kill9: () => kill(child),
    pause: () => {
      if (lives(child)) signalAll(child, 'SIGSTOP')
    },
    resume: () => {
      if (lives(child)) signalAll(child, 'SIGCONT')
    },
    remove: async () => {
      await end()
      rmSync(home, { recursive: true, force: true })
    },
  }
  return { server, end }
}

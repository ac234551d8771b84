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
import { basename, join } from 'node:path'
import {
  childrenOf,
  dataHome,
  findProgram,
  isAlive,
  until,
  type Command,
} from '../../scripts/servers/machine.ts'

/** How a server is told to end: PostgreSQL's own words. Redis makes no difference. */
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
  /** Makes the data folder. */
  readonly prepare: (folder: string) => void
  readonly command: (port: number, folder: string) => Command
  /** Asks whoever answers on a port for its data folder: another test may have taken the port before us. */
  readonly folderOf: (port: number) => Promise<string>
  readonly url: (port: number) => string
  readonly signals: Readonly<Record<StopMode, NodeJS.Signals>>
}

const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) signalAll(child, 'SIGKILL')
})

/** On Linux, a server dies with the test process even if that one is killed and can clean up nothing. */
function tied(): string[] {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv') : undefined
  return setpriv ? [setpriv, '--pdeathsig', 'KILL', '--'] : []
}

/** Signals a server and its own processes. It is frozen first, so that it cannot make new ones meanwhile. */
function signalAll({ pid }: ChildProcess, name: NodeJS.Signals): number[] {
  const sent: number[] = []
  const send = (to: number, signal: NodeJS.Signals): void => {
    try {
      process.kill(to, signal)
      sent.push(to)
    } catch {
      // It is gone already.
    }
  }
  if (name !== 'SIGCONT') send(pid!, 'SIGSTOP')
  for (const child of childrenOf(pid!)) send(child, name)
  send(pid!, name)
  return sent
}

async function anyPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Removes the folders of test runs that were killed before they could. */
function sweep(): void {
  for (const name of readdirSync(dataHome())) {
    const pid = Number(/^private-(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isAlive({ pid, mark: 'node' }))
      rmSync(join(dataHome(), name), { recursive: true, force: true })
  }
}

/** Makes a server in a folder of its own, on a port that nobody has. */
export async function begin(kind: Kind): Promise<PrivateServer> {
  sweep()
  // Not below the temp folder: the user that runs the server must be able to reach it.
  const home = mkdtempSync(join(dataHome(), `private-${process.pid}-`))
  chmodSync(home, 0o755)
  try {
    kind.prepare(join(home, 'data'))
    for (let tries = 1; ; tries += 1) {
      const server = control(kind, home, await anyPort())
      try {
        await server.start()
        return server
      } catch (error) {
        await server.kill9()
        if (tries === 3) throw error
      }
    }
  } catch (error) {
    rmSync(home, { recursive: true, force: true })
    throw error
  }
}

function control(kind: Kind, home: string, port: number): PrivateServer {
  const folder = join(home, 'data')
  const log = join(home, 'log')
  let child: ChildProcess | undefined
  const lives = (): boolean => child !== undefined && child.exitCode === null && !child.signalCode

  const start = async (): Promise<void> => {
    if (lives()) return
    const { file, args, account } = kind.command(port, folder)
    const out = openSync(log, 'a')
    const [first, ...rest] = [...tied(), file, ...args]
    const born = spawn(first!, rest, { ...account, cwd: '/', stdio: ['ignore', out, out] })
    closeSync(out)
    child = born
    children.add(born)
    born.once('exit', () => children.delete(born))
    const isOurs = async (): Promise<boolean> => {
      if (!lives()) throw new Error(`${file} ended: ${readFileSync(log, 'utf8').slice(-2000)}`)
      return (await kind.folderOf(port).catch(() => '')) === folder
    }
    await until(`${file} did not answer on port ${port}`, isOurs, 30)
  }

  const end = async (send: (child: ChildProcess) => void): Promise<void> => {
    if (!lives()) return
    const gone = once(child!, 'exit')
    send(child!)
    await gone
  }

  const kill9 = async (): Promise<void> => {
    let killed: number[] = []
    await end((child) => {
      killed = signalAll(child, 'SIGKILL')
    })
    const mark = basename(kind.command(port, folder).file)
    const gone = (): boolean => !killed.some((pid) => isAlive({ pid, mark }))
    await until('the killed processes did not end', gone, 10)
  }

  return {
    url: kind.url(port),
    port,
    start,
    stop: (mode = 'fast') =>
      end((child) => {
        signalAll(child, 'SIGCONT')
        child.kill(kind.signals[mode])
      }),
    kill9,
    pause: () => {
      if (lives()) signalAll(child!, 'SIGSTOP')
    },
    resume: () => {
      if (lives()) signalAll(child!, 'SIGCONT')
    },
    remove: async () => {
      await kill9()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

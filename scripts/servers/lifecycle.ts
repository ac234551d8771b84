// Installs, starts and stops the servers of the table.
import { chmodSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { install } from './install.ts'
import { dataHome, freePort, isAlive, signal, until } from './machine.ts'
import type { Resources, Server } from './server.ts'
import { isRunning, withLock, readState, updateState, type Running } from './state.ts'
import { servers } from './table.ts'
import { addUser, hasUsers, removeUser } from './users.ts'

/** The outcome of one server. `started`: this call started it. */
export type Outcome =
  | { readonly name: string; readonly url: string; readonly started: boolean }
  | { readonly name: string; readonly missing: string }

/** The named servers and their dependencies; no name means all. */
export function choose(names: readonly string[]): Server[] {
  const unknown = names.find((name) => !servers.some((server) => server.name === name))
  if (unknown !== undefined)
    throw new Error(
      `unknown server ${unknown}; known servers: ${servers.map((s) => s.name).join(', ')}`,
    )
  const wanted = (server: Server): boolean =>
    names.length === 0 ||
    names.includes(server.name) ||
    servers.some((other) => other.after.includes(server.name) && names.includes(other.name))
  return servers.filter(wanted)
}

/** Returns a function that assigns free ports to servers, each port once. */
function createPortAllocator(): (server: Server) => Promise<number[]> {
  const taken = new Set(Object.values(readState()).flatMap((running) => running.ports))
  return async (server) => {
    const ports: number[] = []
    for (const preferred of server.ports) {
      const port = await freePort(preferred, taken)
      taken.add(port)
      ports.push(port)
    }
    return ports
  }
}

const isReady = (server: Server, ports: readonly number[]): Promise<boolean> =>
  server.ready(ports).catch(() => false)

async function startOne(server: Server, resources: Resources, forTests: boolean): Promise<string> {
  const { ports, log } = resources
  rmSync(resources.folder, { recursive: true, force: true })
  mkdirSync(resources.folder, { recursive: true })
  chmodSync(resources.folder, 0o755)
  rmSync(log, { force: true })
  const processes = await server.start(resources)
  updateState(server.name, { ports, processes, log, forTests })
  try {
    await server.settle?.(resources)
    const ready = async (): Promise<boolean> => {
      if (!processes.every(isAlive)) throw new Error(`${server.name} exited immediately`)
      return isReady(server, ports)
    }
    await until(`${server.name} did not answer`, ready, server.seconds)
  } catch (error) {
    await stopOne(server)
    throw new Error(`${(error as Error).message}; see ${log}${readLogEnd(log)}`, { cause: error })
  }
  const url = server.url(ports)
  updateState(server.name, { ports, processes, log, url, forTests })
  return url
}

/** The end of a log, for the error message: the log may be gone later. */
function readLogEnd(log: string): string {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8)
  return lines.map((line) => `\n  ${line}`).join('')
}

async function isUp(server: Server, running: Running | undefined): Promise<boolean> {
  return isRunning(running) && running.url !== undefined && isReady(server, running.ports)
}

/**
 * Starts the servers that are not running, concurrently. A failure of one server is in its outcome.
 */
export function start(names: readonly string[]): Promise<Outcome[]> {
  return withLock(() => startChosen(choose(names), false))
}

/** As `start`, for a test run. The servers of a run that was killed are started again, empty. */
export function startForTests(names: readonly string[]): Promise<Outcome[]> {
  return withLock(async () => {
    if (!hasUsers()) await stopThoseForTests()
    addUser()
    return startChosen(choose(names), true)
  })
}

/** Stops the servers that test runs have started, unless another run uses them. */
export function stopAfterTests(): Promise<void> {
  return withLock(async () => {
    removeUser()
    if (!hasUsers()) await stopThoseForTests()
  })
}

async function stopThoseForTests(): Promise<void> {
  for (const server of servers.toReversed())
    if (readState()[server.name]?.forTests) await stopOne(server)
}

async function startChosen(chosen: readonly Server[], forTests: boolean): Promise<Outcome[]> {
  const before = readState()
  const down: Server[] = []
  for (const server of chosen) if (!(await isUp(server, before[server.name]))) down.push(server)
  const lacking = install(down)
  for (const server of down) await stopOne(server)
  const assignPorts = createPortAllocator()
  const ports = new Map<string, number[]>()
  for (const server of down) ports.set(server.name, await assignPorts(server))
  const data = dataHome()
  const outcomes = new Map<string, Promise<Outcome>>()
  const begin = async (server: Server): Promise<Outcome> => {
    const { name } = server
    const url = before[name]?.url
    if (!down.includes(server)) return { name, url: url!, started: false }
    const reason = lacking.get(name)
    if (reason !== undefined) return { name, missing: reason }
    for (const other of server.after) {
      const outcome = await outcomes.get(other)!
      if ('missing' in outcome) return { name, missing: `it needs ${other}` }
    }
    const resources: Resources = {
      folder: join(data, name),
      log: join(data, `${name}.log`),
      ports: ports.get(name)!,
      portsOf: (other) => readState()[other]!.ports,
    }
    try {
      const url = await startOne(server, resources, forTests).catch(async (error: Error) => {
        // One retry: a free port may have been taken meanwhile, or the machine may be busy.
        console.log(`${error.message}\nStarting ${name} once more …`)
        return startOne(server, { ...resources, ports: await assignPorts(server) }, forTests)
      })
      return { name, url, started: true }
    } catch (error) {
      return { name, missing: (error as Error).message }
    }
  }
  for (const server of chosen) outcomes.set(server.name, begin(server))
  return Promise.all(outcomes.values())
}

/** Stops a server that was started from this checkout. True if it was running. */
async function stopOne(server: Server): Promise<boolean> {
  const running = readState()[server.name]
  if (!running) return false
  const alive = running.processes.filter(isAlive)
  for (const process of alive) {
    signal(process, 'SIGCONT')
    signal(process, server.stopSignal)
  }
  const isStopped = (): boolean => !alive.some(isAlive)
  await until(`${server.name} did not stop`, isStopped, 20).catch(async () => {
    for (const process of alive) signal(process, 'SIGKILL')
    await until(`${server.name} did not die`, isStopped, 10)
  })
  updateState(server.name, undefined)
  return alive.length > 0
}

/**
 * Stops the named servers, dependents first; no name means all. Returns the names of stopped
 * servers.
 */
export function stop(names: readonly string[]): Promise<string[]> {
  return withLock(async () => {
    const chosen = servers.filter((server) => names.length === 0 || names.includes(server.name))
    const stopped: string[] = []
    for (const server of chosen.toReversed()) if (await stopOne(server)) stopped.push(server.name)
    return stopped
  })
}

/** Checks which servers are running. */
export function status(names: readonly string[]): Promise<Outcome[]> {
  const state = readState()
  return Promise.all(
    choose(names).map(async (server): Promise<Outcome> => {
      const running = state[server.name]
      const { name } = server
      if (await isUp(server, running)) return { name, url: running!.url!, started: false }
      const log = running ? `; see ${running.log}` : ''
      return { name, missing: server.lacks() ?? `not running${log}` }
    }),
  )
}

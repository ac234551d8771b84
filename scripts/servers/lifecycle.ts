// Installs, starts and stops the servers of the table.
import { chmodSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { install } from './install.ts'
import { dataHome, freePort, isAlive, signal, until } from './machine.ts'
import type { Room, Server } from './server.ts'
import { isRunning, locked, readState, updateState, type Running } from './state.ts'
import { servers } from './table.ts'

/** What became of one server. `started` tells whether this call did it. */
export type Outcome =
  | { readonly name: string; readonly url: string; readonly started: boolean }
  | { readonly name: string; readonly missing: string }

/** The named servers and those that they stand in front of; no name means all. */
export function choose(names: readonly string[]): Server[] {
  const stranger = names.find((name) => !servers.some((server) => server.name === name))
  if (stranger !== undefined)
    throw new Error(
      `no server is named ${stranger}; there are ${servers.map((s) => s.name).join(', ')}`,
    )
  const wanted = (server: Server): boolean =>
    names.length === 0 ||
    names.includes(server.name) ||
    servers.some((other) => other.after.includes(server.name) && names.includes(other.name))
  return servers.filter(wanted)
}

/** Gives free ports to one server after the other, none of them twice. */
function portGiver(): (server: Server) => Promise<number[]> {
  const taken = new Set(Object.values(readState()).flatMap((running) => running.ports))
  return async (server) => {
    const ports: number[] = []
    for (const wished of server.ports) {
      const port = await freePort(wished, taken)
      taken.add(port)
      ports.push(port)
    }
    return ports
  }
}

const answers = (server: Server, ports: readonly number[]): Promise<boolean> =>
  server.ready(ports).catch(() => false)

async function startOne(server: Server, room: Room): Promise<string> {
  const { ports, log } = room
  rmSync(room.folder, { recursive: true, force: true })
  mkdirSync(room.folder, { recursive: true })
  chmodSync(room.folder, 0o755)
  rmSync(log, { force: true })
  const processes = await server.start(room)
  updateState(server.name, { ports, processes, log })
  try {
    await server.settle?.(room)
    const ready = async (): Promise<boolean> => {
      if (!processes.every(isAlive)) throw new Error(`${server.name} ended at once`)
      return answers(server, ports)
    }
    await until(`${server.name} did not answer`, ready, server.seconds)
  } catch (error) {
    await stopOne(server)
    throw new Error(`${(error as Error).message}; see ${log}${lastWords(log)}`, { cause: error })
  }
  const url = server.url(ports)
  updateState(server.name, { ports, processes, log, url })
  return url
}

/** The end of a log: it may be on a machine that is gone when somebody asks why. */
function lastWords(log: string): string {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8)
  return lines.map((line) => `\n  ${line}`).join('')
}

async function isUp(server: Server, running: Running | undefined): Promise<boolean> {
  return isRunning(running) && running.url !== undefined && answers(server, running.ports)
}

/** Starts what does not run yet, all at once. Never throws for one server: its outcome says what is missing. */
export function start(names: readonly string[]): Promise<Outcome[]> {
  return locked(async () => {
    const chosen = choose(names)
    const before = readState()
    const down: Server[] = []
    for (const server of chosen) if (!(await isUp(server, before[server.name]))) down.push(server)
    const lacking = install(down)
    for (const server of down) await stopOne(server)
    const givePorts = portGiver()
    const ports = new Map<string, number[]>()
    for (const server of down) ports.set(server.name, await givePorts(server))
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
      const room: Room = {
        folder: join(data, name),
        log: join(data, `${name}.log`),
        ports: ports.get(name)!,
        portsOf: (other) => readState()[other]!.ports,
      }
      try {
        const url = await startOne(server, room).catch(async (error: Error) => {
          // A port that was free may be taken by now, and a busy machine be slow once.
          console.log(`${error.message}\nStarting ${name} once more …`)
          return startOne(server, { ...room, ports: await givePorts(server) })
        })
        return { name, url, started: true }
      } catch (error) {
        return { name, missing: (error as Error).message }
      }
    }
    for (const server of chosen) outcomes.set(server.name, begin(server))
    return Promise.all(outcomes.values())
  })
}

/** Stops what was started from this checkout, and nothing else. Gives whether there was something to stop. */
async function stopOne(server: Server): Promise<boolean> {
  const running = readState()[server.name]
  if (!running) return false
  const alive = running.processes.filter(isAlive)
  for (const process of alive) {
    signal(process, 'SIGCONT')
    signal(process, server.stopSignal)
  }
  const gone = (): boolean => !alive.some(isAlive)
  await until(`${server.name} did not stop`, gone, 20).catch(async () => {
    for (const process of alive) signal(process, 'SIGKILL')
    await until(`${server.name} did not die`, gone, 10)
  })
  updateState(server.name, undefined)
  return alive.length > 0
}

/** Stops the named servers, those in front first; no name means all. Gives the names of those that ran. */
export function stop(names: readonly string[]): Promise<string[]> {
  return locked(async () => {
    const chosen = servers.filter((server) => names.length === 0 || names.includes(server.name))
    const stopped: string[] = []
    for (const server of chosen.toReversed()) if (await stopOne(server)) stopped.push(server.name)
    return stopped
  })
}

/** What runs now, asked of each server itself. */
export function status(names: readonly string[]): Promise<Outcome[]> {
  const state = readState()
  return Promise.all(
    choose(names).map(async (server): Promise<Outcome> => {
      const running = state[server.name]
      const { name } = server
      if (await isUp(server, running)) return { name, url: running!.url!, started: false }
      const log = running ? `; see ${running.log}` : ''
      return { name, missing: server.lacks() ?? `it does not run${log}` }
    }),
  )
}

import { spawn, type ChildProcess } from '../processes.ts'
import { openSync, closeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { seedFor } from './chance.ts'
import type { ChildSettings } from './child.ts'
import { tailLedger, type Ledger, type Line, type Tail } from './ledger.ts'
import type { PauserRequest } from './producer.ts'

/** A feeder is a producer that captures on request and gets no faults. */
export type Role = 'worker' | 'producer' | 'feeder'

const programs: Record<Role, URL> = {
  worker: new URL('./worker.ts', import.meta.url),
  producer: new URL('./producer.ts', import.meta.url),
  feeder: new URL('./producer.ts', import.meta.url),
}

/** One process of the run. A replacement fills its slot when it dies. */
export interface Member {
  readonly name: string
  readonly role: Role
  readonly slot: number
  ready: boolean
  /** Whether the process is stopped: `paused` by the killer, or `held` by itself. */
  still: 'no' | 'paused' | 'held'
  /** The process was asked to exit. */
  asked: boolean
}

interface Entry extends Member {
  process: ChildProcess
  tail: Tail
  /** The letter for which the process stopped itself. */
  stoppedFor?: string
  cancelPause: () => void
}

export type ProcessGroupSettings = Omit<
  ChildSettings,
  'name' | 'previous' | 'onDemand' | 'store'
> & {
  workers: number
  producers: number
  /** The URL of the store for a process, by its number. Its replacement uses the same URL. */
  urlFor: (process: number) => string
}

/** Number of concurrent processes. */
export function countProcesses({
  workers,
  producers,
}: {
  workers: number
  producers: number
}): number {
  return workers + producers + 1
}

/** Observes the ledger lines of one letter, from the creation of the watch. */
export interface Watch {
  first(matches: (line: Line) => boolean, withinMs: number): Promise<Line | undefined>
  end(): void
}

/** The standard error of all members, in the folder of the ledgers. */
export const stderrFile = 'stderr.log'

const readEveryMs = 10
const maxIncarnations = 100_000

/**
 * The processes of a run, and the only ones that it ever signals. A process that dies is replaced
 * as long as its role is active, under a new name: names, and so worker ids, are never reused.
 */
export class ProcessGroup {
  readonly #settings: ProcessGroupSettings
  readonly #ledger: Ledger
  readonly #entries = new Map<string, Entry>()
  /** By letter id. */
  readonly #watches = new Map<string, (line: Line) => void>()
  readonly #activeRoles = new Set<Role>(['worker', 'producer', 'feeder'])
  readonly #readTimer: NodeJS.Timeout
  #incarnation = 0
  #exits: (() => void)[] = []

  constructor(settings: ProcessGroupSettings, ledger: Ledger) {
    this.#settings = settings
    this.#ledger = ledger
    this.#readTimer = setInterval(() => this.#read(), readEveryMs)
    this.#spawn('feeder', 0)
    for (let slot = 0; slot < settings.producers; slot++) this.#spawn('producer', slot)
    for (let slot = 0; slot < settings.workers; slot++) this.#spawn('worker', slot)
  }

  /** The live members. Reads the ledgers first, so that self-stopped members are known. */
  members(): readonly Member[] {
    this.#read()
    return [...this.#entries.values()]
  }

  kill(member: Member): void {
    this.#signal(member, 'SIGKILL', 'kill')
  }

  /** Pauses a member and resumes it after `ms`, unless it has died. */
  pause(member: Member, ms: number): void {
    const entry = this.#signal(member, 'SIGSTOP', 'pause')
    if (!entry) return
    entry.still = 'paused'
    const timer = setTimeout(() => this.resume(entry), ms)
    entry.cancelPause = () => clearTimeout(timer)
  }

  resume(member: Member): void {
    const entry = this.#signal(member, 'SIGCONT', 'resume')
    if (entry) entry.still = 'no'
  }

  /** Asks a member to finish and exit. */
  restart(member: Member): void {
    this.#signal(member, 'SIGTERM', 'restart')
  }

  /** Resumes a self-stopped member after another one settled the letter. False if it is dead. */
  resumeLate(name: string, id: string, epoch: number): boolean {
    const entry = this.#entries.get(name)
    if (!entry) return false
    this.#ledger.write({ e: 'late.resume', of: name, id, epoch })
    this.resume(entry)
    return true
  }

  /** Makes the feeder capture a letter that makes its first worker stop itself. */
  ask(request: PauserRequest): void {
    const feeder = [...this.#entries.values()].find(({ role }) => role === 'feeder')
    feeder?.process.send(request, () => {})
  }

  watch(id: string): Watch {
    const seen: Line[] = []
    let check = (): void => {}
    this.#watches.set(id, (line) => {
      seen.push(line)
      check()
    })
    return {
      first: (matches, withinMs) =>
        new Promise((resolve) => {
          const done = (line: Line | undefined): void => {
            clearTimeout(timer)
            check = () => {}
            resolve(line)
          }
          const timer = setTimeout(() => done(undefined), withinMs)
          check = () => {
            const match = seen.find(matches)
            if (match) done(match)
          }
          check()
        }),
      end: () => void this.#watches.delete(id),
    }
  }

  /** Resumes all stopped members. */
  wakeAll(): void {
    for (const member of this.#entries.values()) {
      member.cancelPause()
      if (member.still !== 'no') this.resume(member)
    }
  }

  /**
   * Stops the members of a role without replacement. Those that do not exit in time are killed as
   * hung.
   */
  async dismiss(role: Role, withinMs: number): Promise<void> {
    this.#activeRoles.delete(role)
    const remaining = (): Entry[] =>
      [...this.#entries.values()].filter((member) => member.role === role)
    for (const member of remaining()) if (!member.asked) this.#signal(member, 'SIGTERM', 'dismiss')
    const killTimer = setTimeout(
      () => remaining().forEach((member) => this.#signal(member, 'SIGKILL', 'hung')),
      withinMs,
    )
    while (remaining().length > 0) await new Promise<void>((resolve) => this.#exits.push(resolve))
    clearTimeout(killTimer)
  }

  /** Kills all members. For when the run itself has to end. */
  abandon(): void {
    this.#activeRoles.clear()
    clearInterval(this.#readTimer)
    for (const { process: child } of this.#entries.values()) child.kill('SIGKILL')
  }

  #signal(
    member: Member,
    signal: NodeJS.Signals,
    e: 'kill' | 'pause' | 'resume' | 'restart' | 'dismiss' | 'hung',
  ): Entry | undefined {
    const entry = this.#entries.get(member.name)
    if (!entry) return undefined
    if (signal === 'SIGKILL' || signal === 'SIGTERM') entry.asked = true
    this.#ledger.write({ e, of: entry.name })
    entry.process.kill(signal)
    return entry
  }

  #number(role: Role, slot: number): number {
    const { workers, producers } = this.#settings
    const first = { worker: 0, producer: workers, feeder: workers + producers }
    return first[role] + slot
  }

  #spawn(role: Role, slot: number, previous?: string): void {
    if (++this.#incarnation > maxIncarnations) throw new Error('too many processes')
    const { dir, urlFor, seed, leaseMs, bug, skewed } = this.#settings
    const name = `${role}-${slot}.${this.#incarnation}`
    const settings: ChildSettings = {
      dir,
      store: urlFor(this.#number(role, slot)),
      name,
      leaseMs,
      seed: seedFor(seed, name),
      ...(bug ? { bug } : {}),
      ...(skewed ? { skewed } : {}),
      ...(role === 'feeder' ? { onDemand: true } : {}),
      ...(previous === undefined ? {} : { previous }),
    }
    const stderr = openSync(join(dir, stderrFile), 'a')
    const child = spawn(
      process.execPath,
      [fileURLToPath(programs[role]), JSON.stringify(settings)],
      {
        stdio: ['ignore', 'ignore', stderr, 'ipc'],
        env: { NODE_COMPILE_CACHE: join(dir, 'compiled'), ...process.env, NODE_NO_WARNINGS: '1' },
      },
    )
    closeSync(stderr)
    const tail = tailLedger(dir, name)
    const entry: Entry = {
      name,
      role,
      slot,
      ready: false,
      still: 'no',
      asked: false,
      process: child,
      tail,
      cancelPause: () => {},
    }
    this.#entries.set(name, entry)
    this.#ledger.write({ e: 'spawn', of: name })
    child.on('error', () => {})
    child.once('exit', (code, signal) => this.#handleExit(entry, code, signal))
  }

  #handleExit(entry: Entry, code: number | null, signal: string | null): void {
    entry.cancelPause()
    this.#readOne(entry)
    entry.tail.close()
    this.#entries.delete(entry.name)
    this.#ledger.write({ e: 'exit', of: entry.name, code, signal, asked: entry.asked })
    if (this.#activeRoles.has(entry.role)) this.#spawn(entry.role, entry.slot, entry.name)
    for (const notify of this.#exits.splice(0)) notify()
  }

  #read(): void {
    for (const entry of this.#entries.values()) {
      this.#readOne(entry)
      // The process stopped for a letter that is no longer watched. The signal is repeated until
      // the process continues, since the first one may arrive before it has stopped.
      const isUnwatched = entry.stoppedFor !== undefined && !this.#watches.has(entry.stoppedFor)
      if (entry.still === 'held' && isUnwatched) entry.process.kill('SIGCONT')
    }
  }

  #readOne(entry: Entry): void {
    for (const line of entry.tail.read()) {
      if (line.e === 'ready') entry.ready = true
      if (line.e === 'self.stop') {
        entry.still = 'held'
        entry.stoppedFor = line.id
      } else if (entry.still === 'held') entry.still = 'no'
      if ('id' in line) this.#watches.get(line.id)?.(line)
    }
  }
}

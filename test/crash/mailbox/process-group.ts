import { spawn, type ChildProcess } from '../../processes.ts'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { seedFor } from '../chance.ts'
import { stderrFile } from '../process-group.ts'
import { visibilitySeconds, type ChildSettings } from './child.ts'
import type { Ledger } from './ledger.ts'

export type Role = 'consumer' | 'producer'

const programs: Record<Role, URL> = {
  consumer: new URL('./consumer.ts', import.meta.url),
  producer: new URL('./producer.ts', import.meta.url),
}

export type ProcessGroupSettings = Omit<ChildSettings, 'name' | 'url'> & {
  consumers: number
  /** The URL of the broker for a process, by its number. Its replacement uses the same URL. */
  urlFor: (process: number) => string
}

/** One process of the run. A replacement fills its slot when it dies. */
export interface Member {
  readonly name: string
  readonly role: Role
  readonly slot: number
  readonly child: ChildProcess
  /** Set while the process is stopped: the timer that resumes it. */
  still?: NodeJS.Timeout
  /** The process was asked to exit. */
  asked: boolean
}

const maxIncarnations = 10_000

/** Longer than the visibility timeout, and shorter than an extended receipt. */
export const pauseMs = 2 * visibilitySeconds * 1000

/**
 * The processes of a run, and the only ones that it ever signals. A dead one is replaced, under a
 * new name.
 */
export class ProcessGroup {
  readonly #settings: ProcessGroupSettings
  readonly #ledger: Ledger
  readonly #members = new Map<string, Member>()
  readonly #activeRoles = new Set<Role>(['consumer', 'producer'])
  #incarnation = 0
  #exits: (() => void)[] = []

  constructor(settings: ProcessGroupSettings, ledger: Ledger) {
    this.#settings = settings
    this.#ledger = ledger
    for (let slot = 0; slot < settings.consumers; slot++) this.#spawn('consumer', slot)
  }

  /** Starts the producer. Messages kill consumers, so all of these must be ready before. */
  produce(): void {
    this.#spawn('producer', 0)
  }

  members(): readonly Member[] {
    return [...this.#members.values()]
  }

  /** Whether the process has opened everything and started. */
  isReady({ name }: Member): boolean {
    try {
      const file = join(this.#settings.dir, `${name}.jsonl`)
      return readFileSync(file, 'utf8').includes('"e":"ready"')
    } catch {
      return false
    }
  }

  kill(member: Member): void {
    this.#signal(member, 'SIGKILL', 'kill')
  }

  /** Asks a member to finish and exit. */
  restart(member: Member): void {
    this.#signal(member, 'SIGTERM', 'restart')
  }

  pause(member: Member, ms = pauseMs): void {
    this.#signal(member, 'SIGSTOP', 'pause')
    this.#wakeLater(member, ms)
  }

  wakeAll(): void {
    for (const member of this.#members.values()) if (member.still) this.#wake(member)
  }

  /**
   * Stops the members of a role without replacement. Those that do not exit in time are killed as
   * hung.
   */
  async dismiss(role: Role, withinMs: number): Promise<void> {
    this.#activeRoles.delete(role)
    const remaining = (): Member[] => this.members().filter((member) => member.role === role)
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
    for (const { child, still } of this.#members.values()) {
      clearTimeout(still)
      child.kill('SIGKILL')
    }
  }

  #signal(
    member: Member,
    signal: NodeJS.Signals,
    e: 'kill' | 'pause' | 'resume' | 'restart' | 'dismiss' | 'hung',
  ): void {
    if (signal === 'SIGKILL' || signal === 'SIGTERM') member.asked = true
    this.#ledger.write({ e, of: member.name })
    member.child.kill(signal)
  }

  #wakeLater(member: Member, ms: number): void {
    clearTimeout(member.still)
    member.still = setTimeout(() => this.#wake(member), ms)
  }

  #wake(member: Member): void {
    clearTimeout(member.still)
    delete member.still
    if (this.#members.has(member.name)) this.#signal(member, 'SIGCONT', 'resume')
  }

  #spawn(role: Role, slot: number): void {
    if (++this.#incarnation > maxIncarnations) throw new Error('too many processes')
    const { dir, seed, letters, bug, urlFor } = this.#settings
    const name = `${role}-${slot}.${this.#incarnation}`
    const settings: ChildSettings = {
      dir,
      name,
      letters,
      seed: seedFor(seed, name),
      url: urlFor(role === 'producer' ? 0 : slot + 1),
      ...(bug ? { bug } : {}),
    }
    const stderr = openSync(join(dir, stderrFile), 'a')
    const args = [fileURLToPath(programs[role]), JSON.stringify(settings)]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'ignore', stderr, 'ipc'],
      env: { NODE_COMPILE_CACHE: join(dir, 'compiled'), ...process.env, NODE_NO_WARNINGS: '1' },
    })
    closeSync(stderr)
    const member: Member = { name, role, slot, child, asked: false }
    this.#members.set(name, member)
    this.#ledger.write({ e: 'spawn', of: name })
    child.on('error', () => {})
    child.on('message', () => this.#wakeLater(member, pauseMs))
    child.once('exit', (code, signal) => this.#handleExit(member, code, signal))
  }

  #handleExit(member: Member, code: number | null, signal: string | null): void {
    const { name, role, slot } = member
    clearTimeout(member.still)
    this.#members.delete(name)
    this.#ledger.write({ e: 'exit', of: name, code, signal })
    if (this.#activeRoles.has(role)) this.#spawn(role, slot)
    for (const notify of this.#exits.splice(0)) notify()
  }
}

import { sleep, systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { bounded, whole } from '../backends/bounds.ts'
import { checkOptions, hasMethod, listeningKeys, wrongOption } from './check-options.ts'
import type { DlqHealth } from './dlq-health.ts'
import { teller, type Listening, type Tell } from './events.ts'
import { startHealthServer, type HealthServer, type Readiness } from './health-server.ts'
import { shutdownKeys } from './receiver.ts'
import { keyOf, type Runnable, type ShutdownOptions } from './runnable.ts'
import { Watchdog } from './watchdog.ts'

export interface LoopGroupOptions extends Listening {
  loops: readonly Runnable[]
  /** 30,000 unless said. */
  shutdownTimeoutMs?: number
  /** Where to answer /health/live and /health/ready. Nowhere unless said; 0 takes a free port. */
  healthPort?: number
  /** 127.0.0.1 unless said: only this machine can ask. */
  healthHost?: string
  /** Looked at by /health/ready: they are reported, and do not make the group unready. */
  checks?: readonly (() => Promise<DlqHealth>)[]
  /** Stops the group when a loop has not beaten for so long. Nobody watches unless said. */
  watchdogMs?: number
  /** Ends the process with this code after the watchdog has stopped the group. It stays alive unless said. */
  stalledExitCode?: number
  /** Signals that shut the group down. SIGTERM and SIGINT unless said; a second one ends the process as usual. */
  signals?: readonly NodeJS.Signals[]
  /** Starts a loop that broke down again. Unless said, the first one stops the group. */
  restart?: RestartPolicy
  clock?: Clock
}

export interface RestartPolicy {
  /** How often in a row. */
  attempts: number
  /** The pause before the first; each next one is twice as long. A second unless said. */
  baseMs?: number
  /** A minute unless said. */
  maxMs?: number
  /** A loop that has run for so long starts with a clean record. 5 minutes unless said. */
  forgetMs?: number
}

const groupKeys = [
  ...listeningKeys,
  ...keysOf<Omit<LoopGroupOptions, keyof Listening>>({
    loops: true,
    shutdownTimeoutMs: true,
    healthPort: true,
    healthHost: true,
    checks: true,
    watchdogMs: true,
    stalledExitCode: true,
    signals: true,
    restart: true,
    clock: true,
  }),
]
const restartKeys = keysOf<RestartPolicy>({
  attempts: true,
  baseMs: true,
  maxMs: true,
  forgetMs: true,
})
const renamedOptions = {
  health_port: 'healthPort',
  watchdog_threshold: 'watchdogMs',
  watchdogThreshold: 'watchdogMs',
}

/** When nobody watches, a loop is not ready after so long without a beat. */
const staleMs = 720_000

/** Whoever asks for readiness does not wait for long. */
const longestCheckMs = 2000

/** What a check answered, or why there is no answer. */
type Looked = Pick<DlqHealth, 'status' | 'problems'>

const unknown = (problem: string): Looked => ({ status: 'degraded', problems: [problem] })

class LoopStalled extends Error {
  constructor(loop: string, elapsedMs: number) {
    super(`the loop ${loop} has not beaten for ${Math.round(elapsedMs)} ms`)
    this.name = 'LoopStalled'
  }
}

/**
 * Runs loops together. One that breaks down is told about at once, and either starts again or stops the group; `run` then rejects
 * with its error. Each loop goes by its own options.
 */
export class LoopGroup {
  readonly #options: LoopGroupOptions
  readonly #clock: Clock
  readonly #tell: Tell
  readonly #active = new Set<Runnable>()
  #stopping = new AbortController()
  #running = false
  #latched = false
  #health: HealthServer | undefined
  #crash: { error: unknown } | undefined
  /** Ends the run although a loop does not. */
  #giveUp: () => void = () => {}

  constructor(options: LoopGroupOptions) {
    checkGroup(options)
    refuseCircles(options.loops)
    checkNumbers(options)
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#tell = teller(options)
  }

  get running(): boolean {
    return this.#running
  }

  /** The port that health is answered on, while the group runs. */
  get healthPort(): number | undefined {
    return this.#health?.port
  }

  /** Resolves when all loops have ended. Rejects with the error of the loop that stopped the group. */
  async run(): Promise<void> {
    if (this.#running) throw new RedriveError('INVALID_INPUT', 'the group runs already')
    if (this.#latched) {
      this.#latched = false
      return
    }
    this.#running = true
    this.#stopping = new AbortController()
    this.#crash = undefined
    const watchdog = this.#watchdog()
    const unlisten = this.#listen()
    try {
      await this.#openHealth()
      const givenUp = new Promise<void>((resolve) => {
        this.#giveUp = resolve
      })
      const ended = Promise.all(this.#options.loops.map((loop) => this.#keepRunning(loop)))
      watchdog?.start()
      await Promise.race([ended, givenUp])
    } finally {
      watchdog?.stop()
      unlisten()
      await this.#health?.close()
      this.#health = undefined
      this.#running = false
    }
    if (this.#crash) throw (this.#crash as { error: unknown }).error
  }

  /**
   * Signals all loops, then waits for all of them. True: everything that was under way has ended. Before `run` it is not lost: the
   * next run ends at once.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<boolean> {
    checkKeys('shutdown options', options, shutdownKeys, { renamed: { timeout: 'timeoutMs' } })
    if (!this.#running) {
      this.#latched = true
      return true
    }
    const timeoutMs = options.timeoutMs ?? this.#options.shutdownTimeoutMs ?? 30_000
    this.#stopping.abort()
    const ended = await Promise.all([...this.#active].map((loop) => this.#stop(loop, timeoutMs)))
    this.#giveUp()
    return ended.every(Boolean)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown()
  }

  /** A loop that does not answer is left behind. */
  async #stop(loop: Runnable, timeoutMs: number): Promise<boolean> {
    const waiting = new AbortController()
    try {
      const late = sleep(this.#clock, timeoutMs + 2000, waiting.signal).then(() => false)
      return await Promise.race([loop.shutdown({ timeoutMs }), late])
    } catch (error) {
      this.#tell({ type: 'error', during: `shutdown of ${loop.name}`, error })
      return false
    } finally {
      waiting.abort()
    }
  }

  async #keepRunning(loop: Runnable): Promise<void> {
    const { attempts = 0, forgetMs = 300_000 } = this.#options.restart ?? {}
    let restarts = 0
    while (!this.#stopping.signal.aborted) {
      const startedMs = this.#clock.mono()
      const crash = await this.#runOnce(loop)
      if (!crash) return
      if (this.#clock.mono() - startedMs >= forgetMs) restarts = 0
      if (restarts >= attempts || this.#stopping.signal.aborted)
        return this.#broke(loop.name, crash.error)
      const restartMs = this.#pauseMs(restarts++)
      this.#tell({ type: 'loop-crashed', loop: loop.name, error: crash.error, restartMs })
      await sleep(this.#clock, restartMs, this.#stopping.signal)
    }
  }

  async #runOnce(loop: Runnable): Promise<{ error: unknown } | undefined> {
    this.#active.add(loop)
    try {
      await loop.run()
      return undefined
    } catch (error) {
      return { error }
    } finally {
      this.#active.delete(loop)
    }
  }

  #pauseMs(restarts: number): number {
    const { baseMs = 1000, maxMs = 60_000 } = this.#options.restart ?? {}
    return Math.min(baseMs * 2 ** Math.min(restarts, 30), maxMs)
  }

  #broke(loop: string, error: unknown): void {
    this.#crash ??= { error }
    this.#tell({ type: 'loop-crashed', loop, error })
    if (!this.#stopping.signal.aborted) void this.shutdown()
  }

  #watchdog(): Watchdog | undefined {
    const { loops, watchdogMs: thresholdMs, stalledExitCode } = this.#options
    if (thresholdMs === undefined) return undefined
    const stalled = async (loop: Runnable, elapsedMs: number): Promise<void> => {
      this.#tell({ type: 'loop-stalled', loop: loop.name, elapsedMs })
      this.#crash ??= { error: new LoopStalled(loop.name, elapsedMs) }
      await this.shutdown()
      if (stalledExitCode !== undefined) process.exit(stalledExitCode)
    }
    return new Watchdog({
      loops,
      clock: this.#clock,
      thresholdMs,
      stalled: (loop, elapsedMs) => void stalled(loop, elapsedMs),
    })
  }

  #listen(): () => void {
    const { signals = ['SIGTERM', 'SIGINT'] } = this.#options
    const unlisten = (): void => {
      for (const signal of signals) process.off(signal, hear)
    }
    const hear = (): void => {
      unlisten()
      void this.shutdown()
    }
    for (const signal of signals) process.on(signal, hear)
    return unlisten
  }

  async #openHealth(): Promise<void> {
    const { healthPort: port, healthHost: host = '127.0.0.1' } = this.#options
    if (port === undefined) return
    this.#health = await startHealthServer({ port, host, ready: () => this.readiness() })
  }

  /** What /health/ready answers. */
  async readiness(): Promise<Readiness> {
    const { loops, checks = [], watchdogMs = staleMs } = this.#options
    const reasons = loops.flatMap((loop) => reasonsOf(loop, watchdogMs))
    if (this.#stopping.signal.aborted) reasons.push('shutting down')
    const looked = await Promise.all(checks.map((check) => this.#look(check)))
    const degraded = looked.some(({ status }) => status === 'degraded')
    const ready = reasons.length === 0
    const status = ready ? (degraded ? 'degraded' : 'healthy') : 'unhealthy'
    return { ready, body: { status, reasons, ...(looked.length > 0 ? { checks: looked } : {}) } }
  }

  /** A check that breaks, or has no answer in time, is a problem like others. */
  async #look(check: () => Promise<DlqHealth>): Promise<Looked> {
    const waiting = new AbortController()
    const late = sleep(this.#clock, longestCheckMs, waiting.signal).then(() =>
      unknown(`a check has not answered for ${longestCheckMs} ms`),
    )
    try {
      return await Promise.race([check(), late])
    } catch (error) {
      this.#tell({ type: 'error', during: 'a check of the group', error })
      return unknown('a check failed')
    } finally {
      waiting.abort()
    }
  }
}

function reasonsOf(loop: Runnable, thresholdMs: number): string[] {
  if (!loop.running) return [`${loop.name} does not run`]
  const elapsedMs = loop.heartbeat.elapsedMs()
  const silent = elapsedMs > thresholdMs
  return [
    ...(silent ? [`${loop.name} has not beaten for ${Math.round(elapsedMs)} ms`] : []),
    ...(loop.problems?.() ?? []),
  ]
}

function checkGroup(options: LoopGroupOptions): void {
  checkOptions('LoopGroup', options, groupKeys, renamedOptions)
  const { loops, checks = [], signals = [], restart } = options
  const wrongLoop = Array.isArray(loops) ? loops.find((loop) => !isRunnable(loop)) : loops
  if (!Array.isArray(loops) || wrongLoop !== undefined)
    throw wrongOption('LoopGroup', 'loops', 'a list of loops, such as MainLoop', wrongLoop)
  const wrongCheck = Array.isArray(checks)
    ? checks.find((check) => typeof check !== 'function')
    : checks
  if (wrongCheck !== undefined)
    throw wrongOption(
      'LoopGroup',
      'checks',
      'a list of functions: checks: [() => dlqHealth(deadLetters)]',
      wrongCheck,
    )
  if (!Array.isArray(signals))
    throw wrongOption('LoopGroup', 'signals', "a list of signals: ['SIGTERM', 'SIGINT']", signals)
  if (restart !== undefined)
    checkKeys('LoopGroup option restart', restart, restartKeys, { code: 'INVALID_CONFIG' })
}

function isRunnable(loop: unknown): loop is Runnable {
  return hasMethod(loop, 'run') && hasMethod(loop, 'shutdown')
}

/** No time is later or longer than one that is no number: loops would stall at once, or start again without end. */
function checkNumbers(options: LoopGroupOptions): void {
  const { watchdogMs = 1, shutdownTimeoutMs = 0, healthPort = 0, stalledExitCode = 0 } = options
  const { restart } = options
  bounded('watchdogMs', watchdogMs, Infinity, 1)
  bounded('shutdownTimeoutMs', shutdownTimeoutMs, Infinity)
  whole('healthPort', healthPort, 65_535, 0)
  whole('stalledExitCode', stalledExitCode, 255, 0)
  const { attempts = 0, baseMs = 0, maxMs = 0, forgetMs = 0 } = restart ?? {}
  for (const [name, value] of Object.entries({ attempts, baseMs, maxMs, forgetMs }))
    bounded(`restart.${name}`, value, Infinity)
}

/** Dead letters of one loop may be the requests of another, as long as none comes back to where it began. */
function refuseCircles(loops: readonly Runnable[]): void {
  const next = new Map<string, Set<string>>()
  for (const { flow } of loops) {
    if (!flow) continue
    const targets = next.get(keyOf(flow.from)) ?? new Set()
    for (const mailbox of flow.to) targets.add(keyOf(mailbox))
    next.set(keyOf(flow.from), targets)
  }
  for (const start of next.keys()) {
    const reached = new Set(next.get(start))
    for (const key of reached) for (const further of next.get(key) ?? []) reached.add(further)
    if (reached.has(start))
      throw new RedriveError(
        'INVALID_CONFIG',
        `dead letters of ${start} would come back to it through ${[...reached].join(', ')}: break the circle`,
      )
  }
}

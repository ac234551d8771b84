import { sleep, systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { hasMethods } from '../letter/reading.ts'
import { bounded, whole } from '../backends/bounds.ts'
import { checkOptions, listenerKeys, wrongOption } from './check-options.ts'
import type { DlqHealth } from './dlq-health.ts'
import { createEmit, type Listeners, type Emit } from './events.ts'
import { startHealthServer, type HealthServer, type Readiness } from './health-server.ts'
import { shutdownKeys } from './receiver.ts'
import { keyOf, type Runnable, type ShutdownOptions } from './runnable.ts'
import { Watchdog } from './watchdog.ts'

export interface LoopGroupOptions extends Listeners {
  loops: readonly Runnable[]
  /** Default: 30,000. */
  shutdownTimeoutMs?: number
  /**
   * The port for /health/live and /health/ready; 0 chooses a free port. Default: no health server.
   */
  healthPort?: number
  /** Default: 127.0.0.1, which is reachable from this machine only. */
  healthHost?: string
  /** Checks that /health/ready runs and reports. They do not make the group unready. */
  checks?: readonly (() => Promise<DlqHealth>)[]
  /** Stops the group when a loop has not beaten for this long. Default: no watchdog. */
  watchdogMs?: number
  /**
   * Exits the process with this code after the watchdog has stopped the group. Default: the process
   * stays alive.
   */
  stalledExitCode?: number
  /**
   * Signals that shut the group down. A second signal ends the process as usual. Default: SIGTERM
   * and SIGINT.
   */
  signals?: readonly NodeJS.Signals[]
  /** Restarts a loop that crashed. Default: the first crash stops the group. */
  restart?: RestartPolicy
  clock?: Clock
}

export interface RestartPolicy {
  /** Maximum restarts in a row. */
  attempts: number
  /** The delay before the first restart; each further delay is twice as long. Default: 1000. */
  baseMs?: number
  /** The longest delay. Default: 60,000. */
  maxMs?: number
  /** A loop that has run for this long gets its restarts back. Default: 300,000. */
  forgetMs?: number
}

const groupKeys = [
  ...listenerKeys,
  ...keysOf<Omit<LoopGroupOptions, keyof Listeners>>({
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

/** Without a watchdog, a loop is not ready after this long without a beat. */
const staleMs = 720_000

/** The time limit of a check: readiness is answered soon. */
const maxCheckMs = 2000

/** The result of a check, or why there is none. */
type CheckResult = Pick<DlqHealth, 'status' | 'problems'>

const unknown = (problem: string): CheckResult => ({ status: 'degraded', problems: [problem] })

class LoopStalled extends Error {
  constructor(loop: string, elapsedMs: number) {
    super(`the loop ${loop} has not beaten for ${Math.round(elapsedMs)} ms`)
    this.name = 'LoopStalled'
  }
}

/**
 * Runs several loops. A loop that crashes is reported at once, and either restarts or stops the
 * group; `run` then rejects with its error. Each loop uses its own options.
 */
export class LoopGroup {
  readonly #options: LoopGroupOptions
  readonly #clock: Clock
  readonly #emit: Emit
  readonly #active = new Set<Runnable>()
  #stopping = new AbortController()
  #running = false
  #stopRequested = false
  #health: HealthServer | undefined
  #crash: { error: unknown } | undefined
  /** Ends the run although a loop has not ended. */
  #endRun: () => void = () => {}

  constructor(options: LoopGroupOptions) {
    checkGroup(options)
    rejectCycles(options.loops)
    checkNumbers(options)
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#emit = createEmit(options)
  }

  get running(): boolean {
    return this.#running
  }

  /** The port of the health server, while the group runs. */
  get healthPort(): number | undefined {
    return this.#health?.port
  }

  /**
   * Resolves when all loops have ended. Rejects with the error of the loop that stopped the group.
   */
  async run(): Promise<void> {
    if (this.#running) throw new RedriveError('INVALID_INPUT', 'the group is already running')
    if (this.#stopRequested) {
      this.#stopRequested = false
      return
    }
    this.#running = true
    this.#stopping = new AbortController()
    this.#crash = undefined
    const watchdog = this.#watchdog()
    const removeHandlers = this.#handleSignals()
    try {
      await this.#openHealth()
      const endedEarly = new Promise<void>((resolve) => {
        this.#endRun = resolve
      })
      const ended = Promise.all(this.#options.loops.map((loop) => this.#keepRunning(loop)))
      watchdog?.start()
      await Promise.race([ended, endedEarly])
    } finally {
      watchdog?.stop()
      removeHandlers()
      await this.#health?.close()
      this.#health = undefined
      this.#running = false
    }
    if (this.#crash) throw (this.#crash as { error: unknown }).error
  }

  /**
   * Signals all loops, then waits for all of them. Returns true if all work in process has ended. A
   * call before `run` ends the next run at once.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<boolean> {
    checkKeys('shutdown options', options, shutdownKeys, { renamed: { timeout: 'timeoutMs' } })
    if (!this.#running) {
      this.#stopRequested = true
      return true
    }
    const timeoutMs = options.timeoutMs ?? this.#options.shutdownTimeoutMs ?? 30_000
    this.#stopping.abort()
    const ended = await Promise.all([...this.#active].map((loop) => this.#stop(loop, timeoutMs)))
    this.#endRun()
    return ended.every(Boolean)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown()
  }

  /** Stops a loop. A loop that does not answer in time is abandoned. */
  async #stop(loop: Runnable, timeoutMs: number): Promise<boolean> {
    const waiting = new AbortController()
    try {
      const timeout = sleep(this.#clock, timeoutMs + 2000, waiting.signal).then(() => false)
      return await Promise.race([loop.shutdown({ timeoutMs }), timeout])
    } catch (error) {
      this.#emit({ type: 'error', during: `shutdown of ${loop.name}`, error })
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
        return this.#stopAfterCrash(loop.name, crash.error)
      const restartMs = this.#restartDelayMs(restarts++)
      this.#emit({ type: 'loop-crashed', loop: loop.name, error: crash.error, restartMs })
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

  #restartDelayMs(restarts: number): number {
    const { baseMs = 1000, maxMs = 60_000 } = this.#options.restart ?? {}
    return Math.min(baseMs * 2 ** Math.min(restarts, 30), maxMs)
  }

  #stopAfterCrash(loop: string, error: unknown): void {
    this.#crash ??= { error }
    this.#emit({ type: 'loop-crashed', loop, error })
    if (!this.#stopping.signal.aborted) void this.shutdown()
  }

  #watchdog(): Watchdog | undefined {
    const { loops, watchdogMs: thresholdMs, stalledExitCode } = this.#options
    if (thresholdMs === undefined) return undefined
    const stalled = async (loop: Runnable, elapsedMs: number): Promise<void> => {
      this.#emit({ type: 'loop-stalled', loop: loop.name, elapsedMs })
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

  #handleSignals(): () => void {
    const { signals = ['SIGTERM', 'SIGINT'] } = this.#options
    const removeHandlers = (): void => {
      for (const signal of signals) process.off(signal, onSignal)
    }
    const onSignal = (): void => {
      removeHandlers()
      void this.shutdown()
    }
    for (const signal of signals) process.on(signal, onSignal)
    return removeHandlers
  }

  async #openHealth(): Promise<void> {
    const { healthPort: port, healthHost: host = '127.0.0.1' } = this.#options
    if (port === undefined) return
    this.#health = await startHealthServer({ port, host, ready: () => this.readiness() })
  }

  /** The answer of /health/ready. */
  async readiness(): Promise<Readiness> {
    const { loops, checks = [], watchdogMs = staleMs } = this.#options
    const reasons = loops.flatMap((loop) => reasonsOf(loop, watchdogMs))
    if (this.#stopping.signal.aborted) reasons.push('shutting down')
    const results = await Promise.all(checks.map((check) => this.#runCheck(check)))
    const degraded = results.some(({ status }) => status === 'degraded')
    const ready = reasons.length === 0
    const status = ready ? (degraded ? 'degraded' : 'healthy') : 'unhealthy'
    return { ready, body: { status, reasons, ...(results.length > 0 ? { checks: results } : {}) } }
  }

  /** Runs a check. A check that throws or takes too long counts as a problem. */
  async #runCheck(check: () => Promise<DlqHealth>): Promise<CheckResult> {
    const waiting = new AbortController()
    const timeout = sleep(this.#clock, maxCheckMs, waiting.signal).then(() =>
      unknown(`a check has not answered within ${maxCheckMs} ms`),
    )
    try {
      return await Promise.race([check(), timeout])
    } catch (error) {
      this.#emit({ type: 'error', during: 'a check of the group', error })
      return unknown('a check failed')
    } finally {
      waiting.abort()
    }
  }
}

function reasonsOf(loop: Runnable, thresholdMs: number): string[] {
  if (!loop.running) return [`${loop.name} is not running`]
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
    throw wrongOption('LoopGroup', 'loops', 'an array of loops, such as MainLoop', wrongLoop)
  const wrongCheck = Array.isArray(checks)
    ? checks.find((check) => typeof check !== 'function')
    : checks
  if (wrongCheck !== undefined)
    throw wrongOption(
      'LoopGroup',
      'checks',
      'an array of functions: checks: [() => dlqHealth(deadLetters)]',
      wrongCheck,
    )
  if (!Array.isArray(signals))
    throw wrongOption('LoopGroup', 'signals', "an array of signals: ['SIGTERM', 'SIGINT']", signals)
  if (restart !== undefined)
    checkKeys('LoopGroup option restart', restart, restartKeys, { code: 'INVALID_CONFIG' })
}

function isRunnable(loop: unknown): loop is Runnable {
  return hasMethods(loop, 'run', 'shutdown')
}

/**
 * Rejects NaN and values out of range: comparisons with NaN are false, so loops would stall at once
 * or restart forever.
 */
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

/**
 * Rejects cycles. Dead letters of one loop may be the requests of another, as long as they never
 * return to the first.
 */
function rejectCycles(loops: readonly Runnable[]): void {
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
        `dead letters of ${start} would return to it through ${[...reached].join(', ')}: break the cycle`,
      )
  }
}

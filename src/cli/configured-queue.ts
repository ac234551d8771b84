import type { Logger } from 'pino'
import { pino } from 'pino'
import { systemClock } from '../clock/clock.ts'
import type { Config } from '../config/load.ts'
import { connect } from '../connect/store.ts'
import { RedriveError } from '../errors.ts'
import type { Observer } from '../observer.ts'
import { PrometheusMetrics } from '../observers/metrics/metrics.ts'
import type { QueueOptions } from '../options/options.ts'
import { DeadLetterQueue } from '../queue/queue.ts'
import type { Handler } from '../redelivery/run.ts'
import { handlerOf } from '../targets/handlers.ts'
import { stoppedExit } from './stop-on-signal.ts'
import { readVersion } from './version.ts'
import { terminal } from './terminal.ts'

export interface ConfiguredQueue {
  dlq: DeadLetterQueue
  /** Aborts the handlers that run. */
  abort: () => void
  /** Waits for running handlers, then closes everything. */
  close: () => Promise<void>
}

/** A logger that writes JSON lines to stdout. */
export function createLogger(level: 'info' | 'error' | 'silent' = 'info'): Logger {
  const { stdout, pid } = terminal
  // A stream without a file is written as it is.
  const output = stdout.fd === undefined ? stdout : pino.destination({ fd: stdout.fd, sync: true })
  return pino({ level, base: { pid }, messageKey: 'message' }, output)
}

/** The metrics of this process, and the options of a queue that feed them. */
export function createMetrics(logger: Logger): {
  metrics: PrometheusMetrics
  measured: Pick<QueueOptions, 'observers' | 'onStoreCall'>
} {
  const metrics = new PrometheusMetrics({
    version: readVersion(),
    onError: (error) => logger.error({ error }, 'a scrape could not read all metrics'),
  })
  const { observe, countStoreCall: onStoreCall } = metrics
  return { metrics, measured: { observers: [observe], onStoreCall } }
}

/** The port of an option such as `--port`. */
export function readPort(given: string, option: string): number {
  const port = Number(given)
  if (/^\d+$/.test(given) && port <= 65_535) return port
  throw new RedriveError(
    'INVALID_INPUT',
    `${option} must be a number from 0 to 65535, got "${given}"`,
  )
}

/** Opens a queue with the handlers and the targets of a configuration. It does not start it. */
export async function openConfiguredQueue(
  { store: url, options, handlers, notify, server }: Config,
  log: Observer,
  { observers = [], ...extra }: QueueOptions = {},
): Promise<ConfiguredQueue> {
  await checkStoreOpens(url)
  const { publicUrl } = server
  const dlq = await DeadLetterQueue.open(url, {
    ...(publicUrl === undefined ? {} : { baseUrl: publicUrl }),
    ...options,
    ...extra,
    notify,
    clock: systemClock,
    observers: [log, ...observers],
  })
  const ending = new AbortController()
  const targetHandlers = [...handlers].map(([queue, target]) => {
    const handler = handlerOf(target, systemClock)
    dlq.handle(queue, abortWith(handler, ending.signal))
    return handler
  })
  const close = async (): Promise<void> => {
    await dlq.close()
    for (const handler of targetHandlers) await handler.close?.()
  }
  return { dlq, abort: () => ending.abort(), close }
}

/** A process that cannot reach its store exits with the reason instead of waiting. */
async function checkStoreOpens(url: string): Promise<void> {
  const store = await connect(url, systemClock)
  try {
    await store.open()
  } finally {
    await store.close()
  }
}

/** The same handler, whose runs are also aborted when the process stops. */
function abortWith(handler: Handler, ending: AbortSignal): Handler {
  return (run) => handler({ ...run, signal: AbortSignal.any([run.signal, ending]) })
}

/**
 * Resolves with the first signal. The second signal ends the process at once. Before that, the
 * programs that run letters are ended: otherwise they would continue while the next worker runs the
 * same letters.
 */
export function waitForSignal(abortAll: () => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false
    const end = (signal: NodeJS.Signals): void => {
      if (isStopping) {
        abortAll()
        terminal.exit(stoppedExit)
      }
      isStopping = true
      resolve(signal)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) terminal.on(signal, end)
  })
}

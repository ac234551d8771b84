import { pino } from 'pino'
import { systemClock } from '../clock/clock.ts'
import { connect } from '../connect/store.ts'
import { loadConfig, type Config } from '../config/load.ts'
import { RedriveError } from '../errors.ts'
import { handlerOf } from '../targets/handlers.ts'
import { logObserver } from '../observers/log.ts'
import type { Notifier } from '../observers/notify/notifier.ts'
import { pagerduty } from '../observers/notify/pagerduty.ts'
import { slack } from '../observers/notify/slack.ts'
import { webhook } from '../observers/notify/webhook.ts'
import { DeadLetterQueue } from '../queue/queue.ts'
import type { Handler } from '../redelivery/run.ts'
import { sourcesOf } from './check-config.ts'
import { hideSecrets, type ConfigOptions } from './open.ts'
import { stoppedExit } from './stop-on-signal.ts'

/** Redelivers with the configured handlers until a signal, or prints why there is nothing to do. */
export async function runWorker(options: ConfigOptions): Promise<void> {
  const config = loadConfig(sourcesOf(options))
  const disabledBy = findDisablingSetting(config)
  if (disabledBy === undefined) return run(requireHandlers(config))
  process.stdout.write(`${disabledBy}: nothing to do\n`)
}

/** The setting that disables redelivery, if any. */
function findDisablingSetting({ options, settings }: Config): string | undefined {
  if (options.redeliver !== false) return undefined
  const { from = '' } = settings.find(({ key }) => key === 'redeliver') ?? {}
  const alias = /^dlq_\w+/.exec(from)?.[0]
  return `${alias ?? 'redeliver'} is false`
}

function requireHandlers(config: Config): Config {
  if (config.handlers.size === 0)
    throw new RedriveError(
      'INVALID_CONFIG',
      `no handler is configured${config.file === undefined ? '' : ` in ${config.file}`}: add at least one under handlers, or run letters in your own program`,
    )
  if (/^memory:/i.test(config.store))
    throw new RedriveError(
      'INVALID_CONFIG',
      'a memory: store exists only in its process: use a durable store, such as --store sqlite:redrive.db',
    )
  return config
}

/** A worker that cannot reach its store exits with the reason instead of waiting. */
async function checkStoreOpens(url: string): Promise<void> {
  const store = await connect(url, systemClock)
  try {
    await store.open()
  } finally {
    await store.close()
  }
}

async function run({ store, options, handlers, notify }: Config): Promise<void> {
  await checkStoreOpens(store)
  const logger = pino(
    { base: { pid: process.pid }, messageKey: 'message' },
    pino.destination({ fd: 1, sync: true }),
  )
  const notifiers = createNotifiers(notify)
  const dlq = await DeadLetterQueue.open(store, {
    ...options,
    clock: systemClock,
    observers: [logObserver(logger), ...notifiers],
  })
  const ending = new AbortController()
  const targetHandlers = [...handlers].map(([queue, target]) => {
    const handler = handlerOf(target, systemClock)
    dlq.handle(queue, abortWith(handler, ending.signal))
    return handler
  })
  const firstSignal = waitForSignal(() => ending.abort())
  dlq.start()
  logger.info({ store: hideSecrets(store), queues: [...handlers.keys()] }, 'worker started')
  const signal = await firstSignal
  logger.info({ signal }, 'worker is stopping: waiting for running handlers')
  await dlq.close()
  await Promise.all([
    ...targetHandlers.map((handler) => handler.close?.()),
    ...notifiers.map((one) => one.idle()),
  ])
  logger.info('worker stopped')
  if (signal === 'SIGINT') process.exitCode = stoppedExit
}

function createNotifiers(targets: Config['notify']): Notifier[] {
  return [
    ...(targets.webhook ? [webhook(targets.webhook)] : []),
    ...(targets.slack ? [slack(targets.slack)] : []),
    ...(targets.pagerduty ? [pagerduty(targets.pagerduty)] : []),
  ]
}

/** The same handler, whose runs are also aborted when the worker stops. */
function abortWith(handler: Handler, ending: AbortSignal): Handler {
  return (run) => handler({ ...run, signal: AbortSignal.any([run.signal, ending]) })
}

/**
 * Resolves with the first signal. The second signal ends the process at once. Before that, the
 * programs that run letters are ended: otherwise they would continue while the next worker runs the
 * same letters.
 */
function waitForSignal(abortAll: () => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false
    const end = (signal: NodeJS.Signals): void => {
      if (isStopping) {
        abortAll()
        process.exit(stoppedExit)
      }
      isStopping = true
      resolve(signal)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end)
  })
}

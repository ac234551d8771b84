import { loadConfig, type Config } from '../config/load.ts'
import { RedriveError } from '../errors.ts'
import { sourcesOf } from './check-config.ts'
import { logObserver } from '../observers/log.ts'
import { startMetricsServer, type MetricsServer } from '../observers/metrics/metrics-server.ts'
import {
  createLogger,
  createMetrics,
  openConfiguredQueue,
  readPort,
  waitForSignal,
} from './configured-queue.ts'
import { hideSecrets, type ConfigOptions } from './open.ts'
import { refuseServer } from './remote/server.ts'
import { stoppedExit } from './stop-on-signal.ts'
import { readVersion } from './version.ts'
import { terminal } from './terminal.ts'

export interface WorkerOptions extends ConfigOptions {
  metricsPort?: string
  metricsHost?: string
}

/** Redelivers with the configured handlers until a signal, or prints why there is nothing to do. */
export async function runWorker(options: WorkerOptions): Promise<void> {
  refuseServer(options, 'work')
  const { metricsPort, metricsHost } = options
  const port = metricsPort === undefined ? undefined : readPort(metricsPort, '--metrics-port')
  const config = loadConfig(sourcesOf(options))
  const disabledBy = findDisablingSetting(config)
  if (disabledBy === undefined) return run(requireHandlers(config), port, metricsHost)
  terminal.stdout.write(`${disabledBy}: nothing to do\n`)
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

async function run(
  config: Config,
  metricsPort: number | undefined,
  metricsHost: string | undefined,
): Promise<void> {
  const logger = createLogger()
  const { metrics, measured } = createMetrics(logger)
  const extra = metricsPort === undefined ? {} : measured
  const { dlq, abort, close } = await openConfiguredQueue(config, logObserver(logger), extra)
  dlq.describeProcess({ kind: 'worker', version: readVersion() })
  const firstSignal = waitForSignal(abort)
  const text = (): Promise<string> => metrics.watch(dlq).text()
  let server: MetricsServer | undefined
  try {
    if (metricsPort !== undefined) {
      const host = metricsHost === undefined ? {} : { host: metricsHost }
      server = await startMetricsServer({ port: metricsPort, text, ...host })
    }
    dlq.start()
    const queues = [...config.handlers.keys()]
    const served = server ? { metricsPort: server.port } : {}
    logger.info({ store: hideSecrets(config.store), queues, ...served }, 'worker started')
    const signal = await firstSignal
    logger.info({ signal }, 'worker is stopping: waiting for running handlers')
    if (signal === 'SIGINT') terminal.exitCode = stoppedExit
  } finally {
    await server?.close()
    await close()
  }
  logger.info('worker stopped')
}

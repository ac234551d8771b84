import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import { isLoopback } from '../check/loopback.ts'
import { parseDuration } from '../check/units.ts'
import { sleep, systemClock } from '../clock/clock.ts'
import { loadConfig, type Config } from '../config/load.ts'
import type { ServerSettings } from '../config/server.ts'
import { RedriveError } from '../errors.ts'
import type { Observer } from '../observer.ts'
import { logObserver, logRequests } from '../observers/log.ts'
import { closeServer } from '../server/close-server.ts'
import { Idempotency } from '../server/idempotency.ts'
import type { ServedPipeline } from '../server/handlers/handler.ts'
import { createServer } from '../server/server.ts'
import { OneTimeCodes } from '../server/sign-in/one-time-codes.ts'
import { callerOf, Tokens } from '../server/tokens.ts'
import type { PipelineAdmin } from '../pipeline/admin.ts'
import { hideSettingSecrets, sourcesOf } from './check-config.ts'
import {
  createLogger,
  createMetrics,
  openConfiguredQueue,
  readPort,
  waitForSignal,
} from './configured-queue.ts'
import { demoOptions } from './demo/demo.ts'
import { checkDemoStore, demoStore } from './demo/demo-store.ts'
import { writeHistory } from './demo/history.ts'
import { demoPipeline } from './demo/pipeline.ts'
import { createTraffic } from './demo/traffic.ts'
import { fileOf, hideSecrets, type ConfigOptions } from './open.ts'
import { openPipeline } from './open-pipeline.ts'
import { refuseServer } from './remote/server.ts'
import { stoppedExit } from './stop-on-signal.ts'
import { readVersion } from './version.ts'
import { terminal } from './terminal.ts'

export interface ServeOptions extends ConfigOptions {
  host?: string
  port?: string
  demo?: boolean
  /** YAML file with the graphs of a pipeline. */
  pipeline?: string
  /** URL of the Kafka of the pipeline, if its graphs do not have it. */
  kafka?: string
  stopDelay?: string
}

const defaultHost = '127.0.0.1'
const defaultPort = 7400
const maxStopDelayMs = 600_000

/** Serves until a signal. */
export async function serve(options: ServeOptions): Promise<void> {
  // The demo never uses REDRIVE_STORE.
  if (!options.demo || (options.server ?? options.store)) refuseServer(options, 'serve')
  const stopDelayMs = readStopDelay(options.stopDelay)
  const config = configOf(options)
  const { server: settings } = config
  const host = options.host ?? settings.host ?? defaultHost
  const port =
    options.port === undefined ? (settings.port ?? defaultPort) : readPort(options.port, '--port')
  // On a terminal, a line for every event would scroll the address and the token away. The demo
  // fails on purpose, so that its failures are not logged there.
  const logger = createLogger(terminal.stdout.isTTY ? 'error' : 'info')
  const events = terminal.stdout.isTTY && options.demo ? createLogger('silent') : logger
  const extra = options.demo ? demoOptions(systemClock) : { redeliver: config.handlers.size > 0 }
  const pipeline = await pipelineOf(options)
  if (options.demo) await writeHistory(config.store, systemClock.now())
  const { metrics, measured } = createMetrics(logger)
  if (pipeline) metrics.include(() => pipeline.metrics())
  const { dlq, abort, close } = await openConfiguredQueue(config, logEvents(events), {
    ...extra,
    ...measured,
  })
  const version = readVersion()
  dlq.describeProcess({ kind: 'server', version })
  try {
    const tokens = new Tokens({ store: dlq.store, clock: systemClock })
    const token = await checkAccessTo(host, tokens, settings, options)
    const codes = new OneTimeCodes(systemClock)
    const stopping = new AbortController()
    const app = createServer({
      dlq,
      tokens,
      codes,
      idempotency: new Idempotency(dlq.store, systemClock),
      clock: systemClock,
      version,
      settings,
      effectiveSettings: hideSettingSecrets(config.settings),
      ...servedPipeline(pipeline, options),
      metrics,
      stopping: stopping.signal,
      onAnswer: logRequests(logger),
      onError: (error, route, requestId) =>
        logger.error({ err: error, route, requestId }, 'request failed'),
    })
    const traffic = options.demo ? createTraffic(dlq, systemClock) : undefined
    if (traffic) await checkDemoStore(dlq.store, traffic.queues, config.store)
    const firstSignal = waitForSignal(abort)
    const url = await app.listen({ host, port }).catch((error: unknown) => {
      throw explainListenError(error, host, port)
    })
    dlq.start()
    const running = traffic?.run(stopping.signal)
    const page = token === undefined ? url : `${url}/#code=${codes.create(admin)}`
    announce({ logger, url, page, token, store: config.store })
    const signal = await firstSignal
    logger.info({ signal }, 'server is stopping: waiting for requests and running handlers')
    if (terminal.stdout.isTTY) terminal.stdout.write('\nStopping …\n')
    stopping.abort()
    // Until the delay is over, requests may still need the pipeline.
    const closed = sleep(systemClock, stopDelayMs).then(() =>
      Promise.all([closeServer(app, systemClock), pipeline?.close()]),
    )
    await Promise.all([closed, dlq.stop(), running])
    if (signal === 'SIGINT') terminal.exitCode = stoppedExit
    logger.info('server stopped')
  } finally {
    await close()
  }
}

async function pipelineOf({ pipeline, kafka }: ServeOptions): Promise<PipelineAdmin | undefined> {
  if (pipeline === undefined) return undefined
  return openPipeline({ option: '--pipeline', file: pipeline, kafka })
}

/** The demo shows a pipeline in memory, unless a real one is given. */
function servedPipeline(
  pipeline: PipelineAdmin | undefined,
  { demo }: ServeOptions,
): { pipeline?: ServedPipeline } {
  if (pipeline) return { pipeline }
  return demo ? { pipeline: demoPipeline(systemClock) } : {}
}

/** Captures are logged as requests: a line for each of a million letters would help nobody. */
function logEvents(logger: Logger): Observer {
  const log = logObserver(logger)
  const write: Observer = (event) => (event.type === 'captured' ? undefined : log(event))
  return Object.assign(write, { leavesProcess: true })
}

/** The demo has a store of its own, unless one is given. */
function configOf(options: ServeOptions): Config {
  const { demo = false, store } = options
  const config = loadConfig(sourcesOf(demo ? { ...options, store: store ?? demoStore } : options))
  if (/^memory:/i.test(config.store) && !demo)
    throw new RedriveError(
      'INVALID_CONFIG',
      'a memory: store loses its letters when the server stops: use a durable store, such as --store sqlite:redrive.db',
    )
  const file = fileOf(config.store)
  if (demo && file !== undefined) mkdirSync(dirname(file), { recursive: true })
  return demo ? { ...config, handlers: new Map() } : config
}

function readStopDelay(text = '0s'): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms <= maxStopDelayMs) return ms
  throw new RedriveError(
    'INVALID_INPUT',
    `--stop-delay must be a duration of at most 10m, such as 5s, got "${text}"`,
  )
}

/**
 * Without tokens in the store and without an identity provider, a new token for this process, which
 * then must listen on a loopback address. The demo has such a token even if there are others.
 */
async function checkAccessTo(
  host: string,
  tokens: Tokens,
  { jwt, oidc }: ServerSettings,
  { demo = false }: ServeOptions,
): Promise<string | undefined> {
  const local = isLoopback(host)
  const isOpen = !jwt && !oidc && (await tokens.list()).length === 0
  if (local && (isOpen || demo)) return tokens.generate()
  if (!isOpen) return undefined
  throw new RedriveError(
    'INVALID_CONFIG',
    `${host} is not a loopback address, and the store has no tokens, so that everybody could use the server: create one with redrive tokens create, configure server.oidc or server.jwt, or use --host ${defaultHost}`,
  )
}

/** Says what to change, if the address is what is wrong. */
function explainListenError(error: unknown, host: string, port: number): unknown {
  const { code } = error as NodeJS.ErrnoException
  const other = port < 65_535 ? port + 1 : defaultPort
  const reasons: { [code: string]: string } = {
    EADDRINUSE: `port ${port} of ${host} is in use: stop the program that listens there, or use another port, such as --port ${other}`,
    EACCES: `this user may not listen on port ${port}: use a port above 1023, such as --port ${defaultPort}`,
    EADDRNOTAVAIL: `${host} is not an address of this machine: use --host ${defaultHost}, or --host 0.0.0.0 for all addresses`,
    ENOTFOUND: `${host} is not a known host name: use an address, such as --host ${defaultHost}`,
  }
  const reason = reasons[code ?? '']
  return reason === undefined ? error : new RedriveError('INVALID_CONFIG', reason, { cause: error })
}

/** Who has the generated token. */
const admin = callerOf({ name: 'admin', role: 'admin' })

/** The log never has a secret: the address of the page and the token go to standard error. */
function announce({
  logger,
  url,
  page,
  token,
  store,
}: {
  logger: Logger
  url: string
  /** The address of the web page, which signs in a browser if it has a code. */
  page: string
  token: string | undefined
  store: string
}): void {
  if (!terminal.stdout.isTTY) logger.info({ url, store: hideSecrets(store) }, 'server started')
  else terminal.stdout.write(`\nRedrive serves ${hideSecrets(store)}\n`)
  if (token === undefined && !terminal.stdout.isTTY) return
  terminal.stderr.write(
    [
      '',
      `  Open:   ${page}`,
      ...(token === undefined
        ? []
        : [
            '          The address signs in one browser within 10 minutes.',
            `  Token:  ${token}`,
            '          For programs, and for other browsers, until the server stops.',
          ]),
      '  Stop:   Ctrl-C',
      '',
      '',
    ].join('\n'),
  )
}

import { mkdirSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import { systemClock } from '../clock/clock.ts'
import { createSecret } from '../clock/secret.ts'
import { loadConfig, type Config } from '../config/load.ts'
import { RedriveError } from '../errors.ts'
import { Idempotency } from '../server/idempotency.ts'
import { defaultMaxRequests } from '../server/limits.ts'
import { createServer } from '../server/server.ts'
import { callerOf, isSame, Tokens } from '../server/tokens.ts'
import type { Caller } from '../server/caller.ts'
import { sourcesOf } from './check-config.ts'
import { createLogger, openConfiguredQueue, waitForSignal } from './configured-queue.ts'
import { demoOptions } from './demo/demo.ts'
import { createTraffic } from './demo/traffic.ts'
import { fileOf, hideSecrets, type ConfigOptions } from './open.ts'
import { stoppedExit } from './stop-on-signal.ts'

export interface ServeOptions extends ConfigOptions {
  host?: string
  port?: string
  maxRequests?: string
  demo?: boolean
}

const defaultHost = '127.0.0.1'
const defaultPort = 7400
/** Never the store of REDRIVE_STORE, which may be in production. */
const demoStore = 'sqlite:.redrive/demo.db'

/** Serves until a signal. */
export async function serve(options: ServeOptions): Promise<void> {
  const host = options.host ?? defaultHost
  const port = readPort(options.port)
  const maxRequests = readMaxRequests(options.maxRequests)
  const config = configOf(options)
  // On a terminal, a line for every event would push the address and the token away.
  const logger = createLogger(process.stdout.isTTY ? 'error' : 'info')
  const extra = options.demo ? demoOptions(systemClock) : { redeliver: config.handlers.size > 0 }
  const { dlq, abort, close } = await openConfiguredQueue(config, logger, extra)
  try {
    const tokens = new Tokens({ store: dlq.store, clock: systemClock })
    const token = await checkAccessTo(host, tokens)
    const app = createServer({
      dlq,
      tokens,
      idempotency: new Idempotency(dlq.store, systemClock),
      clock: systemClock,
      version: readVersion(),
      maxRequests,
      ...(token === undefined ? {} : { identify: identifyBy(token) }),
      onError: (error, route) => logger.error({ error, route }, 'request failed'),
    })
    const ending = new AbortController()
    const traffic = options.demo ? createTraffic(dlq, systemClock) : undefined
    const firstSignal = waitForSignal(abort)
    const url = await app.listen({ host, port })
    dlq.start()
    const running = traffic?.run(ending.signal)
    announce({ logger, url, token, store: config.store })
    const signal = await firstSignal
    logger.info({ signal }, 'server is stopping: waiting for requests and running handlers')
    ending.abort()
    await Promise.all([app.close(), running])
    if (signal === 'SIGINT') process.exitCode = stoppedExit
    logger.info('server stopped')
  } finally {
    await close()
  }
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

function readPort(text: string | undefined): number {
  if (text === undefined) return defaultPort
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new RedriveError('INVALID_INPUT', `--port must be a number from 0 to 65535, got "${text}"`)
}

function readMaxRequests(text: string | undefined): number {
  if (text === undefined) return defaultMaxRequests
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text)
  throw new RedriveError(
    'INVALID_INPUT',
    `--max-requests must be a number from 1 to 9999999, got "${text}"`,
  )
}

/**
 * Without tokens in the store, a new token for this process, which then must listen on a loopback
 * address.
 */
async function checkAccessTo(host: string, tokens: Tokens): Promise<string | undefined> {
  if ((await tokens.list()).length > 0) return undefined
  if (isLoopback(host)) return `rdr_${createSecret(32)}`
  throw new RedriveError(
    'INVALID_CONFIG',
    `${host} is not a loopback address, and the store has no tokens, so that everybody could use the server: create one with redrive tokens create, or use --host ${defaultHost}`,
  )
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

function identifyBy(token: string): (given: string) => Caller | undefined {
  const admin = callerOf({ name: 'admin', role: 'admin' })
  return (given) => (isSame(given, token) ? admin : undefined)
}

function announce({
  logger,
  url,
  token,
  store,
}: {
  logger: Logger
  url: string
  token: string | undefined
  store: string
}): void {
  if (!process.stdout.isTTY || token === undefined) {
    logger.info({ url, store: hideSecrets(store) }, 'server started')
    if (token !== undefined) process.stderr.write(`The token of this server: ${token}\n`)
    return
  }
  process.stdout.write(
    [
      `Redrive serves ${hideSecrets(store)} at ${url}`,
      `The token of this server, valid until it stops: ${token}`,
      `Try it:  curl -H 'Authorization: Bearer ${token}' ${url}/api/letters`,
      'Press Ctrl-C to stop.',
      '',
    ].join('\n'),
  )
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

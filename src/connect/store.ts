import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { nodeAdvice } from '../backends/sqlite/node-version.ts'
import type { KeyProvider } from '../check/encryption-keys.ts'
import type { Store } from '../store.ts'
import type { FollowedStore } from '../stores/opensearch/opensearch.ts'
import type { KeyMethods } from '../stores/encrypted/encrypted.ts'
import type { InstrumentedOptions } from '../stores/instrumented/instrumented.ts'
import type { FolderContents } from '../stores/spool/folder.ts'
import type { SpooledStore, SpoolOptions } from '../stores/spool/spool.ts'
import { queryOf, sqliteFileOf, urlSettings } from '../backends/url.ts'

/** Drivers by URL scheme. Each is loaded on first use. */
const drivers: Record<string, (rest: string, clock: Clock) => Promise<Store>> = {
  memory: async (rest, clock) => {
    if (queryOf(rest).size > 0)
      throw new RedriveError(
        'INVALID_INPUT',
        'a memory: store has no settings: remove the part of the URL after ?',
      )
    return (await import('../stores/memory/memory.ts')).memoryStore({ clock })
  },
  sqlite: async (rest, clock) => {
    const path = sqliteFileOf(`sqlite:${rest}`)
    if (!path)
      throw new RedriveError('INVALID_INPUT', 'sqlite: needs a file, such as sqlite:redrive.db')
    const settings = urlSettings('SQLite URL', queryOf(rest), ['synchronous', 'busyTimeoutMs'])
    const { sqliteStore } = await import('../stores/sqlite/sqlite.ts')
    const { synchronous, busyTimeoutMs } = settings
    return sqliteStore({
      path,
      clock,
      ...(synchronous === undefined ? {} : { synchronous: synchronous as 'full' | 'relaxed' }),
      ...(busyTimeoutMs === undefined ? {} : { busyTimeoutMs: Number(busyTimeoutMs) }),
    })
  },
  postgres: (rest, clock) => onPostgres(`postgres:${rest}`, clock),
  postgresql: (rest, clock) => onPostgres(`postgresql:${rest}`, clock),
  redis: (rest, clock) => onRedis(`redis:${rest}`, clock),
  rediss: (rest, clock) => onRedis(`rediss:${rest}`, clock),
  opensearch: (rest, clock) => onOpenSearch(`opensearch:${rest}`, clock),
  opensearchs: (rest, clock) => onOpenSearch(`opensearchs:${rest}`, clock),
}

/**
 * Leases use the clock of the server, which all machines share, unless the caller gives a clock.
 */
async function onPostgres(url: string, clock: Clock): Promise<Store> {
  const { postgresStore } = await needing('pg', () => import('../stores/postgres/postgres.ts'))
  return postgresStore(clock === systemClock ? { url } : { url, clock })
}

/** Leases use the clock of the server, as with Postgres. */
async function onRedis(url: string, clock: Clock): Promise<Store> {
  const { redisStore } = await needing('redis', () => import('../stores/redis/redis.ts'))
  return redisStore(clock === systemClock ? { url } : { url, clock })
}

/** The driver loads its package when it is opened. */
async function onOpenSearch(url: string, clock: Clock): Promise<Store> {
  return (await import('../stores/opensearch/opensearch.ts')).openSearchStore({ url, clock })
}

/** Adds full-text search by an index at an `opensearch://…` URL that follows the store. */
export async function withSearch(store: Store, url: string, clock: Clock): Promise<FollowedStore> {
  const { follow, openSearchIndex } = await import('../stores/opensearch/opensearch.ts')
  return follow(store, openSearchIndex({ url, clock }), { clock })
}

/** Loads a driver. Its peer package may be missing, or the version of Node too old. */
export async function needing<T>(name: string, load: () => Promise<T>, what = 'store'): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    const { code, message } = cause as { code?: unknown; message?: string }
    if (code === 'ERR_UNKNOWN_BUILTIN_MODULE')
      throw new RedriveError(
        'INVALID_CONFIG',
        `this ${what} does not run on Node ${process.versions.node} (${message}): ${nodeAdvice}`,
        { cause },
      )
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message?.includes(`'${name}'`)) throw cause
    throw new RedriveError(
      'INVALID_CONFIG',
      `this ${what} needs the package ${name}: run npm install ${name}`,
      {
        cause,
      },
    )
  }
}

/**
 * The store of a URL, not opened yet: `sqlite:FILE`, `postgres://…`, `redis://…`, `opensearch://…`
 * or `memory:`.
 */
export async function connect(url: string, clock: Clock): Promise<Store> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  const driver =
    scheme !== undefined && Object.hasOwn(drivers, scheme) ? drivers[scheme] : undefined
  if (!scheme || !driver) {
    const known = Object.keys(drivers).map((name) => `${name}:`)
    throw new RedriveError(
      'INVALID_INPUT',
      `unknown store URL ${hidePassword(url)}: it must begin with ${known.join(' or ')}, such as sqlite:redrive.db`,
    )
  }
  return driver(url.slice(scheme.length + 1), clock)
}

/** Puts a spool in front of a store, for the time when the store is unavailable. */
export async function withSpool(store: Store, options: SpoolOptions): Promise<SpooledStore> {
  // The thread of the spool loads SQLite when the store is away. A Node without it must fail here.
  await needing('node:sqlite', () => import('node:sqlite'), 'spool')
  const { addSpool } = await import('../stores/spool/spool.ts')
  return addSpool(store, options)
}

/** Measures every call of a store. */
export async function withMeasures(store: Store, options: InstrumentedOptions): Promise<Store> {
  const { instrumentedStore } = await import('../stores/instrumented/instrumented.ts')
  return instrumentedStore(store, options)
}

/** Encrypts payloads and headers before they reach the store, its index and its spool. */
export async function withEncryption<S extends Store>(
  store: S,
  keys: KeyProvider,
): Promise<S & KeyMethods> {
  return (await import('../stores/encrypted/encrypted.ts')).encryptedStore(store, keys)
}

/** Lists the default spool folder of a store without changing it. */
export async function inspectSpool(url: string): Promise<FolderContents & { path: string }> {
  const path = spoolPathOf(url)
  const { inspectFolder } = await import('../stores/spool/folder.ts')
  return { path, ...(await inspectFolder(path)) }
}

/**
 * Default spool folder of a store: next to a SQLite file; for a server in the working directory.
 * The user and password are not part of the name, so that they may change.
 */
export function spoolPathOf(url: string): string {
  const file = sqliteFileOf(url)
  if (file) return `${file}-spool`
  const place = url.replace(/:\/\/[^@/]*@/, '://')
  const name = createHash('sha256').update(place).digest('hex').slice(0, 12)
  return join('.redrive', `spool-${name}`)
}

/** A URL without its password. */
function hidePassword(url: string): string {
  return JSON.stringify(url.slice(0, 120).replace(/:\/\/[^@/]*@/, '://…@'))
}

import type { Client, Pool } from 'pg'
import { RedriveError } from '../../errors.ts'
import { hasMethods } from '../../letter/reading.ts'
import { checkUrlOrClient, refuseClient } from '../injected-client.ts'
import { urlSettings } from '../url.ts'

/** Where the tables are, and how to connect. */
export interface Address {
  /** The URL for `pg`, without our own settings, or the pool of the application. */
  server: { url: string } | { pool: Pool }
  schema: string
  allowUnsafe: boolean
  poolSize: number
  /** The server in messages: without user and password. */
  place: string
}

export interface AddressOptions {
  url?: string | undefined
  pool?: Pool | undefined
  schema?: string | undefined
  allowUnsafe?: boolean | undefined
  poolSize?: number | undefined
}

export interface AddressDefaults {
  schema: string
  poolSize: number
  leastPoolSize: number
  /** Settings in the URL that the caller reads itself, with `takeSetting`. */
  alsoKnown?: readonly string[]
}

/** Settings in the URL that are read here. */
const ourSettings = ['schema', 'allowUnsafe', 'poolSize'] as const

/**
 * Settings in the URL that `pg` reads, and those of libpq that it ignores but that URLs of hosted
 * servers have.
 */
const clientSettings = [
  'user',
  'password',
  'host',
  'port',
  'ssl',
  'sslmode',
  'sslcert',
  'sslkey',
  'sslrootcert',
  'sslnegotiation',
  'uselibpqcompat',
  'application_name',
  'fallback_application_name',
  'options',
  'client_encoding',
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'query_timeout',
  'connectionTimeoutMillis',
  'keepAlive',
  'keepAliveInitialDelayMillis',
  'enableChannelBinding',
  'channel_binding',
  'connect_timeout',
  'gssencmode',
  'target_session_attrs',
] as const

const schemaName = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/

/** Reads the options, which override the settings in the URL. */
export function addressOf(options: AddressOptions, defaults: AddressDefaults): Address {
  checkUrlOrClient(options.url, options.pool, 'pool')
  const { pool } = options
  const inUrl = options.url === undefined ? undefined : readUrl(options.url, defaults)
  const schema = options.schema ?? inUrl?.schema ?? defaults.schema
  if (!schemaName.test(schema))
    throw invalid('schema must begin with a letter and have up to 48 letters, digits and _')
  const allowUnsafe = options.allowUnsafe ?? inUrl?.allowUnsafe ?? false
  if (!inUrl) {
    const { poolSize, place } = checkPool(pool, options, defaults)
    return { server: { pool: pool! }, schema, allowUnsafe, poolSize, place }
  }
  const poolSize = options.poolSize ?? inUrl.poolSize ?? defaults.poolSize
  if (!Number.isInteger(poolSize) || poolSize < defaults.leastPoolSize || poolSize > 500)
    throw invalid(`poolSize must be an integer from ${defaults.leastPoolSize} to 500`)
  const { server, place } = inUrl
  return { server, schema, allowUnsafe, poolSize, place }
}

interface UrlAddress extends Pick<Address, 'place'> {
  server: { url: string }
  schema?: string | undefined
  allowUnsafe?: boolean | undefined
  poolSize?: number | undefined
}

function readUrl(text: string, { alsoKnown = [] }: AddressDefaults): UrlAddress {
  const url = parseUrl(text)
  const known = [...ourSettings, ...alsoKnown, ...clientSettings]
  urlSettings('Postgres URL', url.searchParams, known, 'INVALID_CONFIG')
  const [schema, unsafe, size] = ourSettings.map((name) => takeSetting(url, name))
  if (unsafe !== undefined && unsafe !== 'true' && unsafe !== 'false')
    throw invalid('allowUnsafe must be true or false')
  const host = url.hostname === '' ? 'local socket' : url.host
  return {
    server: { url: url.href },
    place: `postgres ${host}${url.pathname}`,
    schema,
    allowUnsafe: unsafe === undefined ? undefined : unsafe === 'true',
    poolSize: size === undefined ? undefined : Number(size),
  }
}

/** What `pg` keeps in a pool beyond its types. */
export interface PoolInternals {
  Client: new (options: unknown) => Client
  options: { max: number; binary?: boolean }
}

/** Rejects a pool that we cannot use. Its server is read from a client that is never connected. */
function checkPool(
  pool: unknown,
  { poolSize }: AddressOptions,
  { leastPoolSize }: AddressDefaults,
): Pick<Address, 'poolSize' | 'place'> {
  if (!hasMethods(pool, 'connect', 'Client') || typeof (pool as Pool).options?.max !== 'number')
    refuseClient('pool', 'a Pool of pg (node-postgres): new Pool(…)', pool)
  const { Client, options } = pool as PoolInternals
  if (poolSize !== undefined)
    throw invalid('poolSize cannot be combined with pool: set max of the pool')
  if (options.max < leastPoolSize)
    throw invalid(`pool allows ${options.max} connection: set its max to ${leastPoolSize} or more`)
  if (options.binary) throw invalid('pool has binary: true, which is not supported: leave it out')
  const { host, port, database } = new Client(options)
  return { poolSize: options.max, place: `postgres ${host}:${port}/${database ?? ''}` }
}

/** Removes one of our settings from the URL, since `pg` must not see it. */
export function takeSetting(url: URL, name: string): string | undefined {
  const value = url.searchParams.get(name) ?? undefined
  url.searchParams.delete(name)
  return value
}

function parseUrl(text: string): URL {
  try {
    const url = new URL(text)
    if (url.protocol === 'postgres:' || url.protocol === 'postgresql:') return url
  } catch {
    // Reported below, without the text: it may contain a password.
  }
  throw invalid('a Postgres URL looks like postgres://user@host:5432/database')
}

export function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', `postgres: ${message}`)
}

import { RedriveError } from '../../errors.ts'
import { urlSettings } from '../url.ts'

/** Where the tables are, and under which conditions. */
export interface Address {
  /** For `pg`, without the parameters that are ours. */
  url: string
  schema: string
  allowUnsafe: boolean
  poolSize: number
  /** For people: without user and password. */
  place: string
}

export interface AddressOptions {
  url: string
  schema?: string | undefined
  allowUnsafe?: boolean | undefined
  poolSize?: number | undefined
}

/** What holds where neither options nor the URL say it, and the fewest connections that will do. */
export interface AddressDefaults {
  schema: string
  poolSize: number
  leastPoolSize: number
  /** Settings in the URL that the caller reads itself, with `taken`. */
  alsoKnown?: readonly string[]
}

/** Settings in the URL that are read here. */
const ours = ['schema', 'allowUnsafe', 'poolSize'] as const

/** Settings in the URL that `pg` reads, and those of libpq that it ignores but that URLs of hosted servers have. */
const ofClient = [
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

/** Options go before what the URL says. */
export function addressOf(options: AddressOptions, defaults: AddressDefaults): Address {
  const url = parsed(options.url)
  const known = [...ours, ...(defaults.alsoKnown ?? []), ...ofClient]
  urlSettings('Postgres URL', url.searchParams, known, 'INVALID_CONFIG')
  const take = (name: string): string | undefined => taken(url, name)
  const [inUrl, unsafe, size] = [take('schema'), take('allowUnsafe'), take('poolSize')]
  const schema = options.schema ?? inUrl ?? defaults.schema
  const poolSize = options.poolSize ?? (size === undefined ? defaults.poolSize : Number(size))
  if (!schemaName.test(schema))
    throw invalid('schema must begin with a letter and have up to 48 letters, digits and _')
  if (unsafe !== undefined && unsafe !== 'true' && unsafe !== 'false')
    throw invalid('allowUnsafe must be true or false')
  if (!Number.isInteger(poolSize) || poolSize < defaults.leastPoolSize || poolSize > 500)
    throw invalid(`poolSize must be a whole number from ${defaults.leastPoolSize} to 500`)
  const host = url.hostname === '' ? 'local socket' : url.host
  return {
    url: url.href,
    schema,
    poolSize,
    allowUnsafe: options.allowUnsafe ?? unsafe === 'true',
    place: `postgres ${host}${url.pathname}`,
  }
}

/** A parameter that is ours, which `pg` must not see. */
export function taken(url: URL, name: string): string | undefined {
  const value = url.searchParams.get(name) ?? undefined
  url.searchParams.delete(name)
  return value
}

function parsed(text: string): URL {
  try {
    const url = new URL(text)
    if (url.protocol === 'postgres:' || url.protocol === 'postgresql:') return url
  } catch {
    // Told below, without the text: it may hold a password.
  }
  throw invalid('a URL of Postgres is like postgres://user@host:5432/database')
}

export function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', `postgres: ${message}`)
}

import { RedriveError } from '../../errors.ts'

/** Where the letters are, and under which conditions. */
export interface Address {
  /** For `pg`, without the parameters that are ours. */
  url: string
  schema: string
  allowUnsafe: boolean
  poolSize: number
  /** What the schema must be made by, undefined where it goes with what is there. */
  partitions: 'month' | undefined
  /** For people: without user and password. */
  place: string
}

export interface AddressOptions {
  url: string
  schema?: string | undefined
  allowUnsafe?: boolean | undefined
  poolSize?: number | undefined
  partitions?: 'month' | undefined
}

const defaultPoolSize = 10
const schemaName = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/

/** Options go before what the URL says. */
export function addressOf(options: AddressOptions): Address {
  const url = parsed(options.url)
  const take = (name: string): string | undefined => {
    const value = url.searchParams.get(name) ?? undefined
    url.searchParams.delete(name)
    return value
  }
  const schema = options.schema ?? take('schema') ?? 'redrive'
  const unsafe = take('allowUnsafe')
  const size = take('poolSize')
  const partitions = take('partitions')
  const poolSize = options.poolSize ?? (size === undefined ? defaultPoolSize : Number(size))
  if (!schemaName.test(schema))
    throw invalid('schema must begin with a letter and have up to 48 letters, digits and _')
  if (unsafe !== undefined && unsafe !== 'true' && unsafe !== 'false')
    throw invalid('allowUnsafe must be true or false')
  if (!Number.isInteger(poolSize) || poolSize < 2 || poolSize > 500)
    throw invalid('poolSize must be a whole number from 2 to 500')
  if (partitions !== undefined && partitions !== 'month') throw invalid('partitions must be month')
  const host = url.hostname === '' ? 'local socket' : url.host
  return {
    url: url.href,
    schema,
    poolSize,
    partitions: options.partitions ?? partitions,
    allowUnsafe: options.allowUnsafe ?? unsafe === 'true',
    place: `postgres ${host}${url.pathname}`,
  }
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

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', `postgres: ${message}`)
}

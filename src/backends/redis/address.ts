import { RedriveError } from '../../errors.ts'
import { queryOf, urlSettings } from '../url.ts'

/** The servers and the login. With several nodes, any that answers will do: it knows the others. */
export interface Address {
  nodes: Node[]
  tls: boolean
  database: number
  username?: string
  password?: string
}

export interface Node {
  host: string
  port: number
}

const defaultPort = 6379

/** `redis://user:password@host:6379/0`, or several hosts separated by commas. Ignores the query. */
export function addressOf(url: string): Address {
  const parts = /^(rediss?):\/\/(?:([^@/?]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?.*)?$/i.exec(url)
  if (!parts) throw invalidUrl('begins with redis:// or rediss://')
  const [, scheme, login, hosts, path = ''] = parts
  if (!/^\d*$/.test(path))
    throw invalidUrl('has the number of a database behind the host, or nothing')
  const [, username, password] = /^([^:]*):?(.*)$/s.exec(login ?? '')!.map(decodeLogin)
  return {
    nodes: (hosts || 'localhost').split(',').map(nodeOf),
    tls: scheme!.toLowerCase() === 'rediss',
    database: Number(path),
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
  }
}

/** The server of these options, of which exactly one is given. */
export function serverOf<C>(options: {
  url?: string
  client?: C
}): { address: Address } | { client: C } {
  const { url, client } = options
  return client === undefined ? { address: addressOf(url ?? '') } : { client }
}

/** Settings in the query of the URL that are not numbers. */
interface UrlSettings {
  prefix?: string
  allowVolatile?: boolean
}

/**
 * `?prefix=…&waitReplicas=1&allowVolatile=true`; `numbers` are the names of settings that are
 * numbers. Rejects unknown names.
 */
export function settingsIn<N extends string>(
  url: string,
  numbers: readonly N[],
): UrlSettings & Partial<Record<N, number>> {
  const known = ['prefix', 'allowVolatile', ...numbers] as const
  const { prefix, allowVolatile, ...rest } = urlSettings('Redis URL', queryOf(url), known)
  const counts = Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, Number(value)]),
  ) as Partial<Record<N, number>>
  return {
    ...counts,
    ...(prefix === undefined ? {} : { prefix }),
    ...(allowVolatile === undefined ? {} : { allowVolatile: parseBoolean(allowVolatile) }),
  }
}

function parseBoolean(value: string): boolean {
  if (value !== 'true' && value !== 'false')
    throw invalidUrl('has allowVolatile=true or allowVolatile=false')
  return value === 'true'
}

function nodeOf(text: string): Node {
  const parts = /^(\[[^\]]+\]|[^:[\]@#]+)(?::(\d{1,5}))?$/.exec(text)
  const port = Number(parts?.[2] ?? defaultPort)
  if (!parts || port > 65_535 || !URL.canParse(`redis://${text}`))
    throw invalidUrl('names hosts as host:port, with commas between several')
  return { host: parts[1]!.replace(/^\[|\]$/g, ''), port }
}

function decodeLogin(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalidUrl('has user and password in percent-encoding')
  }
}

function invalidUrl(what: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `a Redis URL ${what}, as in redis://user:password@localhost:6379/0`,
  )
}

export function formatNode({ host, port }: Node): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

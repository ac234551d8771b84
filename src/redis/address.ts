import { RedriveError } from '../errors.ts'

/** Where servers are and how to be let in. With several nodes any that answers will do: it knows the others. */
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

/** `redis://user:password@host:6379/0`, or several hosts with commas between them. What stands behind `?` is not looked at. */
export function addressOf(url: string): Address {
  const parts = /^(rediss?):\/\/(?:([^@/?]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?.*)?$/i.exec(url)
  if (!parts) throw wrong('begins with redis:// or rediss://')
  const [, scheme, login, hosts, path = ''] = parts
  if (!/^\d*$/.test(path)) throw wrong('has the number of a database behind the host, or nothing')
  const [, username, password] = /^([^:]*):?(.*)$/s.exec(login ?? '')!.map(decoded)
  return {
    nodes: (hosts || 'localhost').split(',').map(nodeOf),
    tls: scheme!.toLowerCase() === 'rediss',
    database: Number(path),
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
  }
}

/** What may stand behind `?` in the URL, beside settings that are numbers. */
interface UrlSettings {
  prefix?: string
  allowVolatile?: boolean
}

/** `?prefix=…&waitReplicas=1&allowVolatile=true`; which numbers there may be is said. Strangers are refused by name. */
export function settingsIn<N extends string>(
  url: string,
  numbers: readonly N[],
): UrlSettings & Partial<Record<N, number>> {
  const settings: UrlSettings = {}
  const counts: Partial<Record<N, number>> = {}
  const [, query = ''] = /\?(.*)$/s.exec(url) ?? []
  for (const [name, value] of new URLSearchParams(query)) {
    const number = numbers.find((one) => one === name)
    if (number !== undefined) counts[number] = Number(value)
    else if (name === 'prefix') settings.prefix = value
    else if (name === 'allowVolatile') settings.allowVolatile = isTrue(value)
    else
      throw wrong(
        `has ${['prefix', ...numbers].join(', ')} or allowVolatile behind ?, and not ${JSON.stringify(name.slice(0, 40))}`,
      )
  }
  return { ...settings, ...counts }
}

function isTrue(value: string): boolean {
  if (value !== 'true' && value !== 'false') throw wrong('says allowVolatile=true or =false')
  return value === 'true'
}

function nodeOf(text: string): Node {
  const parts = /^(\[[^\]]+\]|[^:[\]@#]+)(?::(\d{1,5}))?$/.exec(text)
  const port = Number(parts?.[2] ?? defaultPort)
  if (!parts || port > 65_535 || !URL.canParse(`redis://${text}`))
    throw wrong('names hosts as host:port, with commas between several')
  return { host: parts[1]!.replace(/^\[|\]$/g, ''), port }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw wrong('has user and password in percent-encoding')
  }
}

function wrong(what: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `a Redis URL ${what}, as in redis://user:password@localhost:6379/0`,
  )
}

export function shownNode({ host, port }: Node): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

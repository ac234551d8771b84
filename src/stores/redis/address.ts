import { RedriveError } from '../../errors.ts'

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
  const database = path === '' ? 0 : Number(path)
  if (!Number.isInteger(database) || database < 0)
    throw wrong('has the number of a database behind the host, or nothing')
  const [username, password] = (login ?? '').split(':', 2).map(decoded)
  return {
    nodes: (hosts || 'localhost').split(',').map(nodeOf),
    tls: scheme!.toLowerCase() === 'rediss',
    database,
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
  }
}

/** What may stand behind `?` in the URL of a store. */
export interface UrlSettings {
  prefix?: string
  waitReplicas?: number
  timeoutMs?: number
  allowVolatile?: boolean
}

/** `?prefix=…&waitReplicas=1&timeoutMs=5000&allowVolatile=true`. Strangers are refused by name. */
export function settingsIn(url: string): UrlSettings {
  const settings: UrlSettings = {}
  const [, query = ''] = /\?(.*)$/s.exec(url) ?? []
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === 'prefix') settings.prefix = value
    else if (name === 'waitReplicas' || name === 'timeoutMs') settings[name] = Number(value)
    else if (name === 'allowVolatile') settings.allowVolatile = isTrue(value)
    else
      throw wrong(
        `has prefix, waitReplicas, timeoutMs or allowVolatile behind ?, and not ${JSON.stringify(name)}`,
      )
  }
  return settings
}

function isTrue(value: string): boolean {
  if (value !== 'true' && value !== 'false') throw wrong('says allowVolatile=true or =false')
  return value === 'true'
}

function nodeOf(text: string): Node {
  const parts = /^(\[[^\]]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text)
  const port = Number(parts?.[2] ?? defaultPort)
  if (!parts || port > 65_535) throw wrong('names hosts as host:port, with commas between several')
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

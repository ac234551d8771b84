import { RedriveError } from '../../errors.ts'

/** Where servers are and how to be let in. With several nodes any that answers will do: it knows the others. */
export interface Address {
  nodes: string[]
  /** A URL of one node for the client, with the secrets in it. */
  urlOf(node: string): string
}

/** What may stand behind `?` in the URL. */
export interface UrlSettings {
  prefix?: string
  allowVolatile?: boolean
  waitReplicas?: number
  timeoutMs?: number
  retentionSeconds?: number
  maxMessages?: number
}

/** `redis://user:password@host:6379/0`, or several hosts with commas between them. What stands behind `?` is not looked at. */
export function addressOf(url: string): Address {
  const parts = /^(rediss?:\/\/(?:[^@/?]*@)?)([^/?]*)(\/\d*)?(?:\?.*)?$/i.exec(url)
  if (!parts) throw wrong('begins with redis:// or rediss://, and has at most a database behind it')
  const [, head = '', hosts, path = ''] = parts
  const address: Address = {
    nodes: (hosts || 'localhost').split(',').map(withPort),
    urlOf: (node) => `${head}${node}${path}`,
  }
  const strange = address.nodes.some(
    (node) => node === '' || !URL.canParse(address.urlOf(node)) || node.includes('@'),
  )
  if (strange) throw wrong('names hosts as host:port, with commas between several')
  return address
}

function withPort(node: string): string {
  return /^(\[[^\]]+\]|[^:[\]]+)$/.test(node) ? `${node}:6379` : node
}

const numbers = ['waitReplicas', 'timeoutMs', 'retentionSeconds', 'maxMessages'] as const

/** `?prefix=…&waitReplicas=1&allowVolatile=true`. Strangers are refused by name. */
export function settingsIn(url: string): UrlSettings {
  const settings: UrlSettings = {}
  const [, query = ''] = /\?(.*)$/s.exec(url) ?? []
  for (const [name, value] of new URLSearchParams(query)) {
    const number = numbers.find((one) => one === name)
    if (number) settings[number] = Number(value)
    else if (name === 'prefix') settings.prefix = value
    else if (name === 'allowVolatile' && (value === 'true' || value === 'false'))
      settings.allowVolatile = value === 'true'
    else
      throw wrong(
        `has prefix, ${numbers.join(', ')} or allowVolatile=true behind ?, and not ${JSON.stringify(name.slice(0, 40))}`,
      )
  }
  return settings
}

function wrong(what: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `a Redis URL ${what}, as in redis://user:password@localhost:6379/0`,
  )
}

import type { BaseOptions } from '@platformatic/kafka'
import { RedriveError } from '../../errors.ts'
import { unescaped, urlSettings } from '../url.ts'

/** What may stand behind `?` in the URL. */
export interface UrlSettings {
  prefix?: string
  partitions?: number
  replicas?: number
  retentionSeconds?: number
}

/** How to reach a cluster. */
export type Connecting = Pick<BaseOptions, 'bootstrapBrokers' | 'sasl' | 'tls'>

/** How to prove who one is, as Kafka names it. */
const mechanisms = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const

const pattern = /^(?:(kafkas?):\/\/)?(?:([^@/?]*)@)?([^@/?]+)\/?(?:\?(.*))?$/is

/** `kafka://user:password@host:9092,other:9092`, `kafkas://` over TLS, or the hosts alone. */
export function connectionTo(url: string): Connecting {
  const [, scheme = 'kafka', secrets, hosts = '', query = ''] = partsOf(url)
  const connecting: Connecting = { bootstrapBrokers: hosts.split(',').map(withPort) }
  if (scheme.toLowerCase() === 'kafkas') connecting.tls = {}
  if (secrets === undefined) return connecting
  const [username = '', ...rest] = secrets.split(':').map(unescaped)
  const asked = (new URLSearchParams(query).get('sasl') ?? 'PLAIN').toUpperCase()
  const mechanism = mechanisms.find((one) => one === asked)
  if (!mechanism) throw wrong(`has sasl=${mechanisms.join(' or ')} behind ?`)
  return { ...connecting, sasl: { mechanism, username, password: rest.join(':') } }
}

/** The hosts alone, for people: no secret stands in them. */
export function placeOf(url: string): string {
  return pattern.exec(url)?.[3] ?? 'kafka'
}

const numbers = ['partitions', 'replicas', 'retentionSeconds'] as const

/** `?prefix=…&partitions=6`. Unknown parameters are refused by name. */
export function settingsIn(url: string): UrlSettings {
  const [, , , , query = ''] = partsOf(url)
  const known = ['prefix', 'sasl', ...numbers] as const
  const { prefix, ...given } = urlSettings('Kafka URL', new URLSearchParams(query), known)
  const settings: UrlSettings = prefix === undefined ? {} : { prefix }
  for (const name of numbers) if (given[name] !== undefined) settings[name] = Number(given[name])
  return settings
}

function partsOf(url: string): RegExpExecArray {
  const parts = pattern.exec(url)
  if (!parts) throw wrong('begins with kafka:// or kafkas://, and names hosts as host:port')
  return parts
}

const withPort = (host: string): string => (/:\d+$/.test(host) ? host : `${host}:9092`)

function wrong(what: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `a Kafka URL ${what}, as in kafka://user:password@localhost:9092`,
  )
}

import type { BaseOptions } from '@platformatic/kafka'
import { RedriveError } from '../../errors.ts'
import { unescaped, urlSettings } from '../url.ts'

/** Settings in the query of the URL. */
export interface UrlSettings {
  prefix?: string
  partitions?: number
  replicas?: number
  retentionSeconds?: number
}

export type ConnectionOptions = Pick<BaseOptions, 'bootstrapBrokers' | 'sasl' | 'tls'>

const mechanisms = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const

const pattern = /^(?:(kafkas?):\/\/)?(?:([^@/?]*)@)?([^@/?]+)\/?(?:\?(.*))?$/is

/** `kafka://user:password@host:9092,other:9092`, `kafkas://` for TLS, or the hosts alone. */
export function parseConnection(url: string): ConnectionOptions {
  const [, scheme = 'kafka', credentials, hosts = '', query = ''] = splitUrl(url)
  const options: ConnectionOptions = { bootstrapBrokers: hosts.split(',').map(withPort) }
  if (scheme.toLowerCase() === 'kafkas') options.tls = {}
  if (credentials === undefined) return options
  const [username = '', ...rest] = credentials.split(':').map(unescaped)
  const wanted = (new URLSearchParams(query).get('sasl') ?? 'PLAIN').toUpperCase()
  const mechanism = mechanisms.find((name) => name === wanted)
  if (!mechanism) throw invalidUrl(`supports ?sasl=${mechanisms.join(' or ')}`)
  return { ...options, sasl: { mechanism, username, password: rest.join(':') } }
}

/** The hosts without credentials, for messages. */
export function formatHosts(url: string): string {
  return pattern.exec(url)?.[3] ?? 'kafka'
}

const numbers = ['partitions', 'replicas', 'retentionSeconds'] as const

/** `?prefix=…&partitions=6`. Rejects unknown parameters by name. */
export function parseUrlSettings(url: string): UrlSettings {
  const [, , , , query = ''] = splitUrl(url)
  const known = ['prefix', 'sasl', ...numbers] as const
  const { prefix, ...given } = urlSettings('Kafka URL', new URLSearchParams(query), known)
  const settings: UrlSettings = prefix === undefined ? {} : { prefix }
  for (const name of numbers) if (given[name] !== undefined) settings[name] = Number(given[name])
  return settings
}

function splitUrl(url: string): RegExpExecArray {
  const parts = pattern.exec(url)
  if (!parts) throw invalidUrl('starts with kafka:// or kafkas:// and lists hosts as host:port')
  return parts
}

const withPort = (host: string): string => (/:\d+$/.test(host) ? host : `${host}:9092`)

function invalidUrl(rule: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `a Kafka URL ${rule}, as in kafka://user:password@localhost:9092`,
  )
}

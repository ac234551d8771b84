import type { NodeConnectionOptions } from '@nats-io/transport-node'
import { RedriveError } from '../../errors.ts'
import { queryOf, unescaped, urlSettings } from '../url.ts'

/** Parameters of the URL after `?`. */
export interface UrlSettings {
  prefix?: string
  replicas?: number
  maxMessages?: number
  dedupeSeconds?: number
  retentionSeconds?: number
}

/**
 * `nats://user:password@host:4222`, `nats://token@host` or `tls://…`; several hosts with commas
 * between them.
 */
export function connectionTo(url: string): NodeConnectionOptions {
  const parts = /^(nats|tls):\/\/(?:([^@/?]*)@)?([^@/?]+)\/?(?:\?.*)?$/i.exec(url)
  if (!parts) throw wrong('must start with nats:// or tls:// and name hosts as host:port')
  const [, scheme = '', secrets, hosts = ''] = parts
  const options: NodeConnectionOptions = { servers: hosts.split(',') }
  if (scheme.toLowerCase() === 'tls') options.tls = {}
  if (secrets === undefined) return options
  const [user = '', ...rest] = secrets.split(':').map(unescaped)
  if (rest.length === 0) return { ...options, token: user }
  return { ...options, user, pass: rest.join(':') }
}

/** The hosts of the URL without secrets, for messages. */
export function placeOf(url: string): string {
  return /^[a-z]+:\/\/(?:[^@/?]*@)?([^@/?]+)/i.exec(url)?.[1] ?? 'nats'
}

const numbers = ['replicas', 'maxMessages', 'dedupeSeconds', 'retentionSeconds'] as const

/** Parses `?prefix=…&replicas=3`. Unknown parameters are rejected by name. */
export function settingsIn(url: string): UrlSettings {
  const { prefix, ...given } = urlSettings('NATS URL', queryOf(url), [
    'prefix',
    ...numbers,
  ] as const)
  const settings: UrlSettings = prefix === undefined ? {} : { prefix }
  for (const name of numbers) if (given[name] !== undefined) settings[name] = Number(given[name])
  return settings
}

function wrong(what: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `a NATS URL ${what}, as in nats://user:password@localhost:4222`,
  )
}

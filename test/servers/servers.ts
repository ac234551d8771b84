// The real servers that a test may use, and unique names on them.
import { isRunning, readState } from '../../scripts/servers/state.ts'
import { servers } from '../../scripts/servers/table.ts'

export type Backend =
  | 'postgres'
  | 'redis'
  | 'redis-cluster'
  | 'pgbouncer'
  | 'opensearch'
  | 'rabbitmq'
  | 'nats'
  | 'kafka'

/** The URL of a backend; if unavailable, `missing` has the reason and the URL is empty. */
export interface Offer {
  readonly url: string
  readonly missing?: string
}

/**
 * The server in the environment, else the running private one. Use with
 * `describe.skipIf(offer.missing)`.
 */
export function backend(name: Backend): Offer {
  const { variable } = servers.find((server) => server.name === name)!
  const named = process.env[variable]
  if (named) return { url: named }
  const running = readState()[name]
  if (isRunning(running) && running.url !== undefined) return { url: running.url }
  return { url: '', missing: `${name} is not running: npm run servers -- start ${name}` }
}

let count = 0

/** A unique lower-case name, valid for schemas, keys, indices, queues, streams and topics. */
export function freshName(): string {
  count += 1
  const born = Math.floor(performance.timeOrigin).toString(36)
  return `t_${born}_${process.pid.toString(36)}_${count}`
}

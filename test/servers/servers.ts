// Which real servers a test may use, and a place of its own on each of them.
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

/** Where a backend is; when there is none, `missing` says why and the URL is empty. */
export interface Offer {
  readonly url: string
  readonly missing?: string
}

/** The server that the environment names, else the private one that runs. Use with `describe.skipIf(offer.missing)`. */
export function backend(name: Backend): Offer {
  const { variable } = servers.find((server) => server.name === name)!
  const named = process.env[variable]
  if (named) return { url: named }
  const running = readState()[name]
  if (isRunning(running) && running.url !== undefined) return { url: running.url }
  return { url: '', missing: `${name} does not run: npm run servers -- start ${name}` }
}

let count = 0

/** A name that no other test, process or run uses: lower case, and fit for schemas, keys, indices, queues, streams and topics. */
export function freshName(): string {
  count += 1
  const born = Math.floor(performance.timeOrigin).toString(36)
  return `t_${born}_${process.pid.toString(36)}_${count}`
}

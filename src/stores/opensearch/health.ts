import type { StoreHealth } from '../../store.ts'
import type { Address } from './address.ts'
import { indexOf } from './mapping.ts'
import type { Wire } from './wire.ts'

interface ClusterHealth {
  status: 'green' | 'yellow' | 'red'
  number_of_nodes: number
}

type Settings = Record<
  string,
  { settings: { index: { number_of_replicas?: string; blocks?: Record<string, string> } } }
>

/** What the server says of itself and of our indices now. */
export async function healthOf(wire: Wire, { node, prefix }: Address): Promise<StoreHealth> {
  const indices = indexOf(prefix, '*')
  const server = await wire.ask<{ version: { number: string } }>({ method: 'GET', path: '/' })
  const health = await wire.ask<ClusterHealth>({
    method: 'GET',
    path: `/_cluster/health/${indices}`,
  })
  const settings = await wire.ask<Settings>({ method: 'GET', path: `/${indices}/_settings` })
  const { status, number_of_nodes } = health.body
  const problems = Object.entries(settings.body).flatMap(([index, one]) =>
    Object.entries(one.settings.index.blocks ?? {})
      .filter(([, on]) => on === 'true')
      .map(([block]) => `${index} has the block ${block}: free disk space, then clear it`),
  )
  if (status === 'red') problems.push(`${indices}: a shard is not there (status red)`)
  const copies = settings.body[indexOf(prefix, 'letters')]?.settings.index.number_of_replicas
  const checks = {
    server: `opensearch ${server.body.version.number} at ${node}`,
    status,
    nodes: String(number_of_nodes),
    replicas: copies ?? 'unknown',
  }
  return { ok: problems.length === 0, checks, problems }
}

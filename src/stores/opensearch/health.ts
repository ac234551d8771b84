import type { StoreHealth } from '../../store.ts'
import type { Address } from '../../backends/opensearch/address.ts'
import { factsOf, indexOf, indicesOf, problemOf, type IndexFacts } from './mapping.ts'
import type { Wire } from '../../backends/opensearch/connection.ts'

interface ClusterHealth {
  status: 'green' | 'yellow' | 'red'
  number_of_nodes: number
}

/** What the server says of itself and of our indices now. */
export async function healthOf(wire: Wire, { node, prefix, alias }: Address): Promise<StoreHealth> {
  const indices = indexOf(prefix, '*')
  const server = await wire.ask<{ version: { number: string } }>({ method: 'GET', path: '/' })
  const health = await wire.ask<ClusterHealth>({
    method: 'GET',
    path: `/_cluster/health/${indices}`,
  })
  const names = indicesOf(prefix)
  const facts = await factsOf(wire, names)
  const { status, number_of_nodes } = health.body
  const problems = names.flatMap((index) => problemsOf(wire, index, facts.get(index)))
  if (status === 'red') problems.push(`${indices}: a shard is not there (status red)`)
  const copies = facts.get(indexOf(prefix, 'letters'))?.settings.index.number_of_replicas
  const checks = {
    server: `opensearch ${server.body.version.number} at ${node}`,
    status,
    nodes: String(number_of_nodes),
    replicas: copies ?? 'unknown',
    ...(alias === undefined
      ? {}
      : { alias: aliasOf(facts.get(indexOf(prefix, 'letters')), alias) }),
  }
  return { ok: problems.length === 0, checks, problems }
}

function aliasOf(facts: IndexFacts | undefined, alias: string): string {
  return Object.hasOwn(facts?.aliases ?? {}, alias) ? alias : `${alias} belongs to someone else`
}

function problemsOf(wire: Wire, index: string, facts: IndexFacts | undefined): string[] {
  if (!facts) return [`${index} is not there: it was removed while in use, open the store again`]
  const problem = problemOf(index, facts)
  if (problem !== undefined) return [problem]
  if (!Object.hasOwn(facts.aliases, wire.doors.get(index)!))
    return [`${index} is not the one that was opened: open the store again`]
  return Object.entries(facts.settings.index.blocks ?? {})
    .filter(([, on]) => on === 'true')
    .map(([block]) => `${index} has the block ${block}: free disk space, then clear it`)
}

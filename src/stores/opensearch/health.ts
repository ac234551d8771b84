import type { StoreHealth } from '../../store.ts'
import type { Address } from '../../backends/opensearch/address.ts'
import { factsOf, indexOf, indicesOf, problemOf, type IndexFacts } from './mapping.ts'
import type { OpensearchConnection } from '../../backends/opensearch/connection.ts'

interface ClusterHealth {
  status: 'green' | 'yellow' | 'red'
  number_of_nodes: number
}

/** Reads the state of the server and of our indices. */
export async function healthOf(
  connection: OpensearchConnection,
  { node, prefix, alias }: Address,
): Promise<StoreHealth> {
  const indices = indexOf(prefix, '*')
  const server = await connection.request<{ version: { number: string } }>({
    method: 'GET',
    path: '/',
  })
  const health = await connection.request<ClusterHealth>({
    method: 'GET',
    path: `/_cluster/health/${indices}`,
  })
  const names = indicesOf(prefix)
  const facts = await factsOf(connection, names)
  const { status, number_of_nodes } = health.body
  const problems = names.flatMap((index) => problemsOf(connection, index, facts.get(index)))
  if (status === 'red') problems.push(`${indices}: a shard is missing (status red)`)
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
  return Object.hasOwn(facts?.aliases ?? {}, alias) ? alias : `${alias} belongs to another index`
}

function problemsOf(
  connection: OpensearchConnection,
  index: string,
  facts: IndexFacts | undefined,
): string[] {
  if (!facts) return [`${index} does not exist: it was deleted while in use, open the store again`]
  const problem = problemOf(index, facts)
  if (problem !== undefined) return [problem]
  if (!Object.hasOwn(facts.aliases, connection.writeAliases.get(index)!))
    return [`${index} is not the index that was opened: open the store again`]
  return Object.entries(facts.settings.index.blocks ?? {})
    .filter(([, on]) => on === 'true')
    .map(([block]) => `${index} has the block ${block}: free disk space, then clear it`)
}

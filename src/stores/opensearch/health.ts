import type { StoreHealth } from '../../store.ts'
import type { Address } from '../../backends/opensearch/address.ts'
import { indexOf, indicesOf, problemOf, readIndexInfo, type IndexInfo } from './mapping.ts'
import type { OpensearchConnection } from '../../backends/opensearch/connection.ts'

interface ClusterHealth {
  status: 'green' | 'yellow' | 'red'
  number_of_nodes: number
}

/** Reads the state of the server and of the indices of the store. */
export async function readHealth(
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
  const infos = await readIndexInfo(connection, names)
  const { status, number_of_nodes } = health.body
  const problems = names.flatMap((index) => problemsOf(connection, index, infos.get(index)))
  if (status === 'red')
    problems.push(
      `${indices}: a shard is missing (status red): start its node, or restore a snapshot`,
    )
  const letters = infos.get(indexOf(prefix, 'letters'))
  const checks = {
    server: `opensearch ${server.body.version.number} at ${node}`,
    status,
    nodes: String(number_of_nodes),
    replicas: letters?.settings.index.number_of_replicas ?? 'unknown',
    ...(alias === undefined ? {} : { alias: describeAlias(letters, alias) }),
  }
  return { ok: problems.length === 0, checks, problems }
}

function describeAlias(info: IndexInfo | undefined, alias: string): string {
  return Object.hasOwn(info?.aliases ?? {}, alias) ? alias : `${alias} belongs to another index`
}

function problemsOf(
  connection: OpensearchConnection,
  index: string,
  info: IndexInfo | undefined,
): string[] {
  if (!info) return [`${index} does not exist: it was deleted while in use, open the store again`]
  const problem = problemOf(index, info)
  if (problem !== undefined) return [problem]
  if (!Object.hasOwn(info.aliases, connection.writeAliases.get(index)!))
    return [`${index} is not the index that was opened: open the store again`]
  return Object.entries(info.settings.index.blocks ?? {})
    .filter(([, value]) => value === 'true')
    .map(([block]) => `${index} has the block ${block}: free disk space, then clear the block`)
}

import { recordQueryOf } from '../search.ts'
import type { Json } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import { toText, type RedisConnection } from '../../backends/redis/connection.ts'
import type { DocumentRecord, RecordQuery, Records } from '../../store.ts'
import type { StoreContext } from './context.ts'
import { scripts } from './scripts.ts'

type Use = <T>(work: (context: StoreContext) => Promise<T>) => Promise<T>

/** Records that one command reads. */
const stepRecords = 200

/** Records in Redis. `use` rejects if the store is not open. */
export function redisRecords(use: Use): Records {
  return {
    get: (kind, id) =>
      use(async ({ connection, tag }) => {
        const found = await connection.send('HGET', `${tag}:R:${kind}`, id)
        return found === null ? undefined : recordOf(id, toText(found))
      }),
    put: (kind, id, value, expectedVersion) =>
      use(async (context) => {
        const expected = expectedVersion === undefined ? '' : String(expectedVersion)
        const args = [context.now(), kind, id, JSON.stringify(value), expected]
        return (await context.connection.run(scripts.putRecord, args)) === 1
          ? 'written'
          : 'conflict'
      }),
    list: (kind, query = {}) =>
      use((context) => {
        const { ids, ...rest } = recordQueryOf(query)
        return ids ? getRecords(context, kind, ids) : listed(context.connection, kind, rest)
      }),
    remove: (kind, id) =>
      use(async ({ connection }) => (await connection.run(scripts.dropRecord, [kind, id])) === 1),
    kinds: () =>
      use(async ({ connection, tag }) => {
        const kinds = (await connection.send('SMEMBERS', `${tag}:K`)) as Buffer[]
        return kinds.map(toText).sort()
      }),
  }
}

async function getRecords(
  { connection, tag }: StoreContext,
  kind: string,
  ids: readonly string[],
): Promise<DocumentRecord[]> {
  const found: DocumentRecord[] = []
  for (let start = 0; start < ids.length; start += stepRecords) {
    const some = ids.slice(start, start + stepRecords)
    const values = (await connection.send(
      'HMGET',
      `${tag}:R:${kind}`,
      ...some,
    )) as (Buffer | null)[]
    for (const [n, value] of values.entries())
      if (value !== null) found.push(recordOf(some[n]!, toText(value)))
  }
  return found
}

/** Ids with the same prefix are adjacent, so the list ends at the first id without it. */
async function listed(
  connection: RedisConnection,
  kind: string,
  { prefix = '', after, limit = Number.POSITIVE_INFINITY }: RecordQuery,
): Promise<DocumentRecord[]> {
  const found: DocumentRecord[] = []
  let from = after === undefined || isBefore(after, prefix) ? `[${prefix}` : `(${after}`
  while (found.length < limit) {
    const count = Math.min(stepRecords, limit - found.length)
    const fields = (await connection.run(scripts.listRecords, [
      kind,
      from,
      String(count),
    ])) as Buffer[]
    for (let at = 0; at < fields.length; at += 2) {
      const id = toText(fields[at])
      if (!id.startsWith(prefix)) return found
      if (fields[at + 1] !== null) found.push(recordOf(id, toText(fields[at + 1])))
      from = `(${id}`
    }
    if (fields.length < 2 * count) break
  }
  return found
}

/** The server sorts by bytes. */
function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}

function recordOf(id: string, text: string): DocumentRecord {
  const [, version, ms, value] = /^(\d+) (\d+) ([\s\S]*)$/.exec(text)!
  const updatedAt = toTimestamp(Number(ms))
  return { id, version: Number(version), updatedAt, value: JSON.parse(value!) as Json }
}

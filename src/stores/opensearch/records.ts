import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkListLimit } from '../search.ts'
import type { Json } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { hashOf } from './fields.ts'
import type { DocumentIndex, Stamped } from './document-index.ts'
import { contentionError, maxAttempts } from './contention.ts'

export interface RecordDocument extends Stamped {
  kind: string
  id: string
  /** As JSON. */
  value: string
  version: number
  updated_at: string
}

const pageSize = 500

/**
 * Records as documents. `use` is called before every operation, and throws if the store is closed.
 */
export function openSearchRecords(
  use: () => { records: DocumentIndex<RecordDocument>; clock: Clock },
): Records {
  const documentId = (kind: string, id: string): string => hashOf(kind, id)

  return {
    get: async (kind, id) => {
      const name = documentId(kind, id)
      const found = (await use().records.read([name])).get(name)
      return found && recordOf(found.source)
    },

    put: async (kind, id, value, expectedVersion) => {
      const { records, clock } = use()
      const name = documentId(kind, id)
      for (let tries = 0; tries < maxAttempts; tries++) {
        const found = (await records.read([name])).get(name)
        const version = found?.source.version ?? 0
        if (expectedVersion !== undefined && expectedVersion !== version) return 'conflict'
        const updated_at = toTimestamp(clock.now())
        const put = { kind, id, value: JSON.stringify(value), version: version + 1, updated_at }
        const [written] = await records.write([{ id: name, put, at: found?.mark ?? 'new' }])
        if (written!.done) return 'written'
      }
      throw contentionError('a record')
    },

    list: async (kind, options = {}) => {
      const { records } = use()
      checkListLimit(options.limit)
      const { prefix = '', after, limit = Infinity } = options
      await records.refresh()
      const found: DocumentRecord[] = []
      let place = after === undefined ? undefined : [after.toWellFormed()]
      while (found.length < limit) {
        const size = Math.min(pageSize, limit - found.length)
        const { hits } = await records.search({
          query: {
            bool: { filter: [{ term: { kind } }, ...(prefix ? [{ prefix: { id: prefix } }] : [])] },
          },
          sort: [{ id: 'asc' }],
          size,
          ...(place ? { search_after: place } : {}),
        })
        found.push(...hits.map(({ source }) => recordOf(source)))
        if (hits.length < size) break
        place = hits.at(-1)!.place as string[]
      }
      return found
    },

    remove: async (kind, id) => {
      const { records } = use()
      const name = documentId(kind, id)
      for (let tries = 0; tries < maxAttempts; tries++) {
        const found = (await records.read([name])).get(name)
        if (!found) return false
        const [written] = await records.write([{ id: name, drop: true, at: found.mark }])
        if (written!.done) return true
      }
      throw contentionError('a record')
    },

    kinds: async () => {
      const { records } = use()
      await records.refresh()
      const kinds: string[] = []
      let after: Record<string, string> | undefined
      do {
        const sources = [{ value: { terms: { field: 'kind' } } }]
        const composite = { size: 1000, sources, ...(after ? { after } : {}) }
        const page = await records.search({ size: 0, aggs: { counts: { composite } } })
        kinds.push(...page.counts.map(([kind]) => kind))
        after = page.nextCounts
      } while (after)
      return kinds.sort()
    },
  }
}

function recordOf({ kind, id, value, version, updated_at }: RecordDocument): DocumentRecord {
  try {
    return { id, version, value: JSON.parse(value) as Json, updatedAt: updated_at }
  } catch {
    throw new RedriveError(
      'STORE_UNSAFE',
      `opensearch: the record ${kind} ${id} is damaged: write it again, or remove it`,
    )
  }
}

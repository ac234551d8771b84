import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { recordQueryOf } from '../search.ts'
import type { Json } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { hashOf } from './fields.ts'
import type { DocumentIndex, SortValues, Stamped } from './document-index.ts'
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
 * Records as documents. `getContext` is called before every operation, and throws if the store is
 * closed.
 */
export function openSearchRecords(
  getContext: () => { records: DocumentIndex<RecordDocument>; clock: Clock },
): Records {
  const documentId = (kind: string, id: string): string => hashOf(kind, id)

  return {
    get: async (kind, id) => {
      const name = documentId(kind, id)
      const document = await getContext().records.readOne(name)
      return document && recordOf(document.source)
    },

    put: async (kind, id, value, expectedVersion) => {
      const { records, clock } = getContext()
      const name = documentId(kind, id)
      for (let tries = 0; tries < maxAttempts; tries++) {
        const document = await records.readOne(name)
        const version = document?.source.version ?? 0
        if (expectedVersion !== undefined && expectedVersion !== version) return 'conflict'
        const updated_at = toTimestamp(clock.now())
        const put = { kind, id, value: JSON.stringify(value), version: version + 1, updated_at }
        const [written] = await records.write([
          { id: name, put, expected: document?.revision ?? 'new' },
        ])
        if (written!.done) return 'written'
      }
      throw contentionError('a record')
    },

    list: async (kind, query = {}) => {
      const { records } = getContext()
      const { prefix = '', after, limit = Infinity, ids } = recordQueryOf(query)
      if (ids)
        return readRecords(
          records,
          ids.map((id) => documentId(kind, id)),
        )
      await records.refresh()
      const list: DocumentRecord[] = []
      let position: SortValues | undefined =
        after === undefined ? undefined : [after.toWellFormed()]
      while (list.length < limit) {
        const size = Math.min(pageSize, limit - list.length)
        const hits = await records.search({
          query: {
            bool: { filter: [{ term: { kind } }, ...(prefix ? [{ prefix: { id: prefix } }] : [])] },
          },
          sort: [{ id: 'asc' }],
          size,
          ...(position ? { search_after: position } : {}),
        })
        list.push(...hits.map(({ source }) => recordOf(source)))
        if (hits.length < size) break
        position = hits.at(-1)!.sortValues
      }
      return list
    },

    remove: async (kind, id) => {
      const { records } = getContext()
      const name = documentId(kind, id)
      for (let tries = 0; tries < maxAttempts; tries++) {
        const document = await records.readOne(name)
        if (!document) return false
        const [written] = await records.write([
          { id: name, drop: true, expected: document.revision },
        ])
        if (written!.done) return true
      }
      throw contentionError('a record')
    },

    kinds: async () => {
      const { records } = getContext()
      await records.refresh()
      return [...(await records.countBy('kind')).keys()].sort()
    },
  }
}

/** The records of these documents, in the given order. Missing ones are left out. */
async function readRecords(
  index: DocumentIndex<RecordDocument>,
  names: readonly string[],
): Promise<DocumentRecord[]> {
  const documents = await index.read(names)
  return names.flatMap((name) => {
    const document = documents.get(name)
    return document ? [recordOf(document.source)] : []
  })
}

function recordOf({ kind, id, value, version, updated_at }: RecordDocument): DocumentRecord {
  try {
    return { id, version, value: JSON.parse(value) as Json, updatedAt: updated_at }
  } catch {
    throw new RedriveError(
      'STORE_UNSAFE',
      `opensearch: the record ${kind} ${id} is damaged: write the record again, or remove it`,
    )
  }
}

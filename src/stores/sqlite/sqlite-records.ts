import { recordQueryOf } from '../search.ts'
import type { Json } from '../../letter/letter.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import type { SentRecord } from './protocol.ts'
import type { StoreThread } from './thread.ts'

/** Records in the file. `use` gives the thread, or throws when the store is not open. */
export function sqliteRecords(use: () => StoreThread): Records {
  return {
    async get(kind, id) {
      const found = await use().call('record', { kind, id })
      return found ? recordOf(found) : undefined
    },
    async put(kind, id, value, expectedVersion) {
      const ask = { kind, id, value: JSON.stringify(value) }
      return use().call(
        'put',
        expectedVersion === undefined ? ask : { ...ask, expected: expectedVersion },
      )
    },
    async list(kind, query = {}) {
      const thread = use()
      const { prefix = '', after, limit, ids } = recordQueryOf(query)
      const found = ids
        ? await thread.call('recordsOf', { kind, ids })
        : await thread.call('records', { kind, prefix, after: after ?? null, limit: limit ?? -1 })
      return found.map(recordOf)
    },
    async remove(kind, id) {
      return use().call('drop', { kind, id })
    },
    async kinds() {
      return use().call('kinds', null)
    },
  }
}

function recordOf([id, version, value, updatedAt]: SentRecord): DocumentRecord {
  return { id, version, value: JSON.parse(value) as Json, updatedAt }
}

import { checkListLimit } from '../search.ts'
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
    async list(kind, { prefix = '', after, limit } = {}) {
      const thread = use()
      checkListLimit(limit)
      const ask = { kind, prefix, after: after ?? null, limit: limit ?? -1 }
      const found = await thread.call('records', ask)
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

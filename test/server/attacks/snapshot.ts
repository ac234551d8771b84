import { states } from '../../../src/letter/letter.ts'
import type { Store } from '../../../src/store.ts'

/**
 * Everything in a store that an attack must not change: letters with their versions, and records.
 * Denials in the audit log and the time of the last use of a token are meant to change.
 */
export async function snapshotOf(store: Store): Promise<string[]> {
  const { items } = await store.find({ state: [...states], limit: 1000 })
  const letters = items.map(({ id, version, state }) => `letter ${id} ${version} ${state}`)
  const records = await Promise.all(
    (await store.records.kinds())
      .filter((kind) => !kind.startsWith('audit') && kind !== 'sample' && kind !== 'worker')
      .map(async (kind) =>
        (await store.records.list(kind)).map(({ id, version }) =>
          kind === 'token' ? `token ${id}` : `${kind} ${id} ${version}`,
        ),
      ),
  )
  return [...letters, ...records.flat()].sort()
}

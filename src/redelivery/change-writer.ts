import type { Change } from '../letter/moves.ts'
import type { ApplyResult, Store } from '../store.ts'

/** Maximum number of changes in one call of the store, so that no call delays the event loop. */
const maxChanges = 250

interface Batch {
  changes: Change[]
  results: Promise<ApplyResult[]>
}

/** Writes changes to the store. Changes of runs that end in the same tick share one call. */
export class ChangeWriter {
  readonly #store: Store
  /** The batch that takes further changes in this tick. */
  #open: Batch | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** Rejects if the call of the store rejects: other changes of the call may be the cause. */
  async write(change: Change): Promise<ApplyResult> {
    const batch = (this.#open ??= this.#newBatch())
    const index = batch.changes.push(change) - 1
    if (batch.changes.length === maxChanges) this.#open = undefined
    return (await batch.results)[index]!
  }

  #newBatch(): Batch {
    const changes: Change[] = []
    return { changes, results: this.#send(changes) }
  }

  async #send(changes: Change[]): Promise<ApplyResult[]> {
    await Promise.resolve()
    if (this.#open?.changes === changes) this.#open = undefined
    return this.#store.apply(changes)
  }
}

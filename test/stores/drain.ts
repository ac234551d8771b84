import { systemClock } from '../../src/clock/clock.ts'
import { resolve } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'

/** Claims and resolves all letters, prints their ids, and closes the store. */
export async function drain(store: Store, worker: string): Promise<void> {
  for (;;) {
    const { letters } = await store.claim({ worker, limit: 7, leaseMs: 60_000 })
    if (letters.length === 0) break
    const by = { at: toTimestamp(systemClock.now()), actor: worker, guard: 'epoch' } as const
    const results = await Promise.all(letters.map((one) => store.apply([resolve(one, by)])))
    for (const [at, letter] of letters.entries())
      console.log(results[at]![0] === 'written' ? letter.id : `lost ${letter.id}`)
  }
  await store.close()
}

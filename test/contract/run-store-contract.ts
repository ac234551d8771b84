import { describe, it } from 'vitest'
import type { StoreBench } from '../../src/testing/index.ts'
import { storeContract } from '../../src/testing/index.ts'

/** A bench with cleanup. */
export interface ClosableBench extends StoreBench {
  close: () => Promise<void>
}

/** Turns the conformance suite into tests of one store. Each check gets a bench of its own. */
export function runStoreContract(name: string, openBench: () => Promise<ClosableBench>): void {
  describe(`${name} keeps the store contract`, () => {
    for (const { topic, title, needs, run } of storeContract)
      it(`${topic}: ${title}`, async ({ skip }) => {
        const bench = await openBench()
        try {
          const reason = needs?.(bench.store.powers)
          if (reason !== undefined) skip(reason)
          await run(bench)
        } finally {
          await bench.close()
        }
      })
  })
}

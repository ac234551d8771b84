import { describe, it } from 'vitest'
import { storeContract, type StoreBench, type StoreCheck } from '../../src/testing/index.ts'
import { atDepth, isDeep } from '../depth.ts'

/** A bench with cleanup. */
export interface ClosableBench extends StoreBench {
  close: () => Promise<void>
}

/**
 * Turns the conformance suite into tests of one store. Each check gets a bench of its own. Each
 * driver runs all checks; a variant of a driver may run only some `inShort`, and all of them in
 * `npm run deep`.
 */
export function runStoreContract(
  name: string,
  openBench: () => Promise<ClosableBench>,
  { inShort = storeContract }: { inShort?: readonly StoreCheck[] } = {},
): void {
  describe(`${name} keeps the store contract`, () => {
    for (const { topic, title, needs, run } of atDepth(inShort, storeContract))
      it(`${topic}: ${title}`, async ({ skip }) => {
        const bench = await openBench()
        try {
          const reason = needs?.(bench.store.powers)
          if (reason !== undefined) skip(reason)
          await run(Object.assign(bench, { thorough: isDeep }))
        } finally {
          await bench.close()
        }
      })
  })
}

/**
 * The contract in short, for a variant that changes these topics: all of their checks, the first
 * check of each other topic, and all checks for durable or shared stores and for wake-ups.
 */
export function checksOf(...topics: string[]): StoreCheck[] {
  const known = new Set(storeContract.map(({ topic }) => topic))
  for (const topic of topics) if (!known.has(topic)) throw new Error(`unknown topic ${topic}`)
  const seen = new Set<string>()
  return storeContract.filter(({ topic, needs }) => {
    const isFirst = !seen.has(topic)
    seen.add(topic)
    return isFirst || needs !== undefined || topics.includes(topic)
  })
}

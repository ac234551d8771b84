import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import type { Store } from '../../src/store.ts'
import { fakeClock, type FakeClock } from '../../src/testing/index.ts'
import { commands, landmarks, type Real } from './commands.ts'
import { compare } from './compare.ts'
import { StoreModel } from './model.ts'

export interface ModelBench {
  /** Open and empty. */
  store: Store
  /** Closes the store and opens its data again, for durable stores. */
  reopen?: () => Promise<Store>
  close: () => Promise<void>
}

/** Applies the same random steps to a store and to the model, and compares them. */
export function runStoreModel(
  name: string,
  open: (clock: FakeClock) => Promise<ModelBench>,
  options: { numRuns?: number; seed?: number } = {},
): void {
  const { numRuns = 300, seed } = options
  describe(`${name} behaves like the model`, () => {
    it(`in ${numRuns} random runs`, async () => {
      const reached = new Set<string>()
      const property = fc.asyncProperty(
        fc.commands(commands, { size: 'max', maxCommands: 80 }),
        (run) => drive(run, open, reached),
      )
      await fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed }) })
      const missed = landmarks.filter((landmark) => !reached.has(landmark))
      if (numRuns >= 100) assert.deepEqual(missed, [], 'the runs covered all required cases')
    }, 300_000)
  })
}

async function drive(
  run: Iterable<fc.AsyncCommand<StoreModel, Real>>,
  open: (clock: FakeClock) => Promise<ModelBench>,
  reached: Set<string>,
): Promise<void> {
  const clock = fakeClock()
  const { store, reopen, close } = await open(clock)
  const real: Real = {
    store,
    clock,
    claimed: [],
    seen: [],
    steps: 0,
    reached,
    ...(reopen ? { reopen } : {}),
  }
  const model = new StoreModel(clock.now())
  try {
    await fc.asyncModelRun(() => ({ model, real }), run)
    await compare(model, real.store)
  } finally {
    await close()
  }
}

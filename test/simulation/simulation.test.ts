import { describe, expect, it } from 'vitest'
import { atDepth } from '../depth.ts'
import seeds from './seeds.json' with { type: 'json' }
import { simulate } from './simulate.ts'

/**
 * In addition to the seeds that failed once. Those repeat their finding as long as the order of
 * draws is unchanged; after that they are ordinary seeds. `npm run simulate` runs thousands more.
 */
const freshSeeds = Array.from({ length: atDepth(6, 24) }, (_, index) => index)

describe('simulate', () => {
  it.each([...new Set([...seeds, ...freshSeeds])])(
    'keeps every guarantee under seed %i',
    async (seed) => {
      const { violation, trace } = await simulate(seed)
      expect(violation, trace.last(40).join('\n')).toBeUndefined()
    },
  )

  it('repeats a run from the same seed', async () => {
    const [first, second] = [await simulate(2), await simulate(2)]
    expect(second.fingerprint).toBe(first.fingerprint)
    expect((await simulate(10)).fingerprint).not.toBe(first.fingerprint)
  })
})

import { describe, expect, it } from 'vitest'
import { plantedBugs } from './planted-bugs.ts'
import { simulate } from './simulate.ts'

/** A bug must be found within this many runs. */
const maxSeeds = 60

/** Short runs that find most bugs at once. After a change of the order of draws, any others do. */
const shortRuns = [48, 55, 56, 58, 54]
const seeds = [...new Set([...shortRuns, ...Array.from({ length: maxSeeds }, (_, n) => n)])]

describe('simulate', () => {
  it.each(Object.entries(plantedBugs))(
    'detects that %s',
    { timeout: 600_000 },
    async (_name, plant) => {
      for (const seed of seeds) {
        const { violation } = await simulate(seed, { plant })
        if (!violation) continue
        const { violation: withoutTheBug } = await simulate(seed)
        expect(withoutTheBug).toBeUndefined()
        return
      }
      expect.unreachable(`${seeds.length} runs did not find the bug`)
    },
  )
})

import { describe, expect, it } from 'vitest'
import { plantedBugs } from './planted-bugs.ts'
import { simulate } from './simulate.ts'

/** A bug must be found within this many runs. */
const maxSeeds = 60

describe('simulate', () => {
  it.each(Object.entries(plantedBugs))(
    'detects that %s',
    { timeout: 600_000 },
    async (_name, plant) => {
      for (let seed = 0; seed < maxSeeds; seed++) {
        const { violation } = await simulate(seed, { plant })
        if (!violation) continue
        const { violation: withoutTheBug } = await simulate(seed)
        expect(withoutTheBug).toBeUndefined()
        return
      }
      expect.unreachable(`${maxSeeds} runs did not find the bug`)
    },
  )
})

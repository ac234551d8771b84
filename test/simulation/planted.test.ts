import { describe, expect, it } from 'vitest'
import { planted } from './planted.ts'
import { simulate } from './simulate.ts'

/** A bug that this many runs do not find would slip through. */
const maxSeeds = 60

describe('simulate', () => {
  it.each(Object.entries(planted))(
    'finds out when %s',
    { timeout: 600_000 },
    async (_name, plant) => {
      for (let seed = 0; seed < maxSeeds; seed++) {
        const { violation } = await simulate(seed, { plant })
        if (!violation) continue
        const { violation: withoutTheBug } = await simulate(seed)
        expect(withoutTheBug).toBeUndefined()
        return
      }
      expect.unreachable(`${maxSeeds} runs did not find it`)
    },
  )
})

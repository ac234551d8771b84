import { describe, expect, it } from 'vitest'
import { planted } from './planted.ts'
import { simulate } from './simulate.ts'

/** A bug that this many runs do not find would slip through. */
const maxSeeds = 60

describe('a planted bug', () => {
  it.each(Object.entries(planted))('%s: is found', async (_name, plant) => {
    const found: (string | undefined)[] = []
    for (let seed = 0; seed < maxSeeds && found.length === 0; seed++) {
      const { violation } = await simulate(seed, { plant })
      if (violation) found.push(violation.invariant)
    }
    expect(found).toHaveLength(1)
    expect(found[0]).not.toBe('UP')
  })
})

import { describe, expect, it } from 'vitest'
import { lacksPrivate } from '../servers/private.ts'
import { crash } from './crash.ts'
import { verdictOf } from './verdict.ts'

const stores = [
  { store: 'sqlite', seconds: 2, minKills: 1, lacking: undefined },
  { store: 'postgres', seconds: 4, minKills: 1, lacking: lacksPrivate.postgres() },
  { store: 'redis', seconds: 4, minKills: 1, lacking: lacksPrivate.redis() },
] as const

describe('crash', () => {
  for (const { store, seconds, minKills, lacking } of stores)
    it.skipIf(lacking)(
      `keeps every promise of ${store} under faults${lacking ? ` (${lacking})` : ''}`,
      { timeout: 240_000 },
      async () => {
        // With this seed the server is killed after 2.8 seconds.
        const seed = 17
        const size = { seconds, workers: 3, producers: 1, leaseMs: 350, seed, latePauses: 3 }
        const own = store === 'sqlite' ? {} : { store }
        const result = await crash({ ...size, ...own, keep: false })
        const demands = { minKills, latePauses: 3, minRestarts: 1, minCuts: 1 }
        const verdict = verdictOf(result, demands)
        expect(verdict.problems, verdict.examples.join('\n')).toEqual([])
        expect(verdict.captured).toBeGreaterThan(0)
        expect(verdict.resolved + verdict.exhausted + verdict.parked).toBeGreaterThanOrEqual(
          verdict.captured,
        )
      },
    )
})

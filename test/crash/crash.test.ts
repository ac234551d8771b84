import { describe, expect, it } from 'vitest'
import { crash } from './crash.ts'
import { verdictOf } from './verdict.ts'

describe('crash', () => {
  it(
    'keeps every promise while workers and producers are killed and paused',
    { timeout: 240_000 },
    async () => {
      const settings = { seconds: 5, workers: 4, producers: 1, leaseMs: 350, seed: 7, keep: false }
      const result = await crash({ ...settings, latePauses: 3 })
      const verdict = verdictOf(result, { minKills: 2, latePauses: 3 })
      expect(verdict.problems, verdict.examples.join('\n')).toEqual([])
      expect(verdict.captured).toBeGreaterThan(0)
      expect(verdict.resolved + verdict.exhausted + verdict.parked).toBeGreaterThanOrEqual(
        verdict.captured,
      )
    },
  )
})

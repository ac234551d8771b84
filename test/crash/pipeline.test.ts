import { describe, expect, it } from 'vitest'
import { lacksPrivate } from '../servers/private.ts'
import { maxDeliveries } from './pipeline/plan.ts'
import { listViolations, soak } from './pipeline/soak.ts'

const lacking = lacksPrivate.kafka()

describe.skipIf(lacking)(`nodes of a pipeline${lacking ? ` (${lacking})` : ''}`, () => {
  it('lose nothing and send nothing twice in transactions, even when the broker is killed', async () => {
    const verdict = await soak({
      records: 2000,
      poisons: 2,
      consumers: 3,
      seed: 3,
      workMs: 10,
      transactional: true,
      restarts: 1,
      limitSeconds: 100,
    })
    expect(listViolations(verdict), verdict.examples.join('\n')).toEqual([])
    expect(verdict.routed + verdict.dead).toBe(2000)
    expect(verdict.restarts).toBe(1)
  }, 600_000)

  it('dead-letter a record that kills its process after exactly its limit, and continue', async () => {
    const verdict = await soak({
      records: 600,
      poisons: 1,
      consumers: 1,
      seed: 1,
      workMs: 1,
      transactional: false,
      restarts: 0,
      limitSeconds: 100,
    })
    expect(listViolations(verdict), verdict.examples.join('\n')).toEqual([])
    expect(verdict.kills).toBe(0)
    expect(Object.values(verdict.poisonRuns)).toEqual([maxDeliveries])
  }, 600_000)
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateKafka } from '../servers/private.ts'
import { bugNames, maxDeliveries, type BugName } from './pipeline/plan.ts'
import { listViolations, soakOn, type SoakSettings } from './pipeline/soak.ts'

const lacking = lacksPrivate.kafka()
const timeout = 300_000

/** One node, which nothing but poison kills. */
const quiet: SoakSettings = {
  records: 240,
  poisons: 0,
  consumers: 1,
  seed: 1,
  workMs: 1,
  transactional: false,
  restarts: 0,
  limitSeconds: 100,
}

describe.skipIf(lacking)(`nodes of a pipeline${lacking ? ` (${lacking})` : ''}`, () => {
  let server: PrivateServer
  beforeAll(async () => {
    server = await privateKafka()
  }, timeout)
  afterAll(() => server.remove(), timeout)

  it(
    'lose nothing and send nothing twice in transactions, even when the broker is killed',
    { timeout },
    async () => {
      const run = { records: 800, poisons: 1, consumers: 3, seed: 9, workMs: 10, restarts: 1 }
      const verdict = await soakOn(server, { ...quiet, ...run, transactional: true })
      expect(listViolations(verdict), verdict.examples.join('\n')).toEqual([])
      expect(verdict.routed + verdict.dead).toBe(800)
      expect(verdict.restarts).toBe(1)
      expect(verdict.kills).toBeGreaterThan(0)
    },
  )

  it(
    'dead-letter a record that kills its process after exactly its limit, and continue',
    { timeout },
    async () => {
      const verdict = await soakOn(server, { ...quiet, poisons: 1 })
      expect(listViolations(verdict), verdict.examples.join('\n')).toEqual([])
      expect(verdict.kills).toBe(0)
      expect(Object.values(verdict.poisonRuns)).toEqual([maxDeliveries])
    },
  )

  /** What shows a bug. A send that has not begun is lost only if its process dies. */
  const shows: Record<BugName, Partial<SoakSettings>> = {
    'commit-before-send': { poisons: 2, workMs: 20 },
    'commit-past-failed': {},
    'drop-malformed': {},
  }

  it.each(bugNames)('are caught when they have the planted bug %s', { timeout }, async (bug) => {
    const verdict = await soakOn(server, { ...quiet, ...shows[bug], bug })
    expect(listViolations(verdict)).toContain('lost')
  })
})

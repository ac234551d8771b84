import { describe, expect, it } from 'vitest'
import { decideStep, type Step, type StepInput } from '../../src/bulk/decide.ts'
import { noProgress, type BulkLimits, type BulkProgress } from '../../src/letter/bulk-action.ts'

const nowMs = Date.parse('2026-03-01T12:30:15.000Z')

interface Case {
  does: string
  progress: Partial<BulkProgress>
  limits?: Partial<BulkLimits>
  input?: Partial<StepInput>
  step: Step
}

const cases: Case[] = [
  { does: 'acts on all letters', progress: { pending: 9 }, step: { kind: 'act', letters: 9 } },
  { does: 'finishes after the last outcome', progress: { failed: 9 }, step: { kind: 'finish' } },
  {
    does: 'waits for the last outcomes',
    progress: { waiting: 1, succeeded: 8 },
    step: { kind: 'wait', ms: Infinity },
  },
  {
    does: 'keeps the number of waiting letters below the concurrency',
    progress: { pending: 90, waiting: 7 },
    limits: { concurrency: 10 },
    step: { kind: 'act', letters: 3 },
  },
  {
    does: 'waits while as many letters wait',
    progress: { pending: 90, waiting: 10 },
    limits: { concurrency: 10 },
    step: { kind: 'wait', ms: Infinity },
  },
  {
    does: 'acts on as many letters as the rate allows',
    progress: { pending: 90 },
    limits: { rate: 100 },
    input: { tokens: 5.5 },
    step: { kind: 'act', letters: 5 },
  },
  {
    does: 'waits until the rate allows one letter',
    progress: { pending: 90 },
    limits: { rate: 2 },
    input: { tokens: 0.5 },
    step: { kind: 'wait', ms: 250 },
  },
  {
    does: 'waits until its start',
    progress: { pending: 9 },
    limits: { startAt: '2026-03-01T12:31:00.000Z' },
    step: { kind: 'wait', ms: 45_000 },
  },
  {
    does: 'waits until its time window opens',
    progress: { pending: 9 },
    limits: { window: { from: '22:00', to: '06:00' } },
    step: { kind: 'wait', ms: (9.5 * 3600 - 15) * 1000 },
  },
  {
    does: 'begins its canary with one letter',
    progress: { pending: 9 },
    limits: { canary: { first: 1, factor: 10, maxFailureShare: 0.1 } },
    step: {
      kind: 'act',
      letters: 1,
      ramp: {
        size: 1,
        allowed: 1,
        stepFrom: { succeeded: 0, failed: 0 },
        startFrom: { succeeded: 0, failed: 0 },
      },
    },
  },
]

describe('the next step of an action', () => {
  it.each(cases)('$does', ({ progress, limits, input, step }) => {
    expect(
      decideStep({
        limits: { concurrency: 1000, ...limits },
        progress: { ...noProgress, ...progress },
        nowMs,
        tokens: Infinity,
        ...input,
      }),
    ).toEqual(step)
  })
})

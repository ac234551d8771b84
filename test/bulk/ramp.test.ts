import { describe, expect, it } from 'vitest'
import { judgeRamp, startRamp, type Ramp } from '../../src/bulk/ramp.ts'
import { noProgress, type BulkProgress } from '../../src/letter/bulk-action.ts'

const canary = { first: 1, factor: 10, maxFailureShare: 0.05 }
const of = (progress: Partial<BulkProgress>): BulkProgress => ({ ...noProgress, ...progress })
const atStart = startRamp(canary, of({ pending: 10_000 }))
const step = (change: Partial<Ramp>): Ramp => ({ ...atStart, ...change })

describe('the ramp of a canary', () => {
  it('starts with the first step', () => {
    const progress = of({ pending: 10_000 })
    expect(judgeRamp(canary, atStart, progress)).toEqual({ kind: 'continue', ramp: atStart })
    expect(atStart).toMatchObject({ size: 1, allowed: 1 })
  })

  it('waits for the outcomes of a step', () => {
    expect(judgeRamp(canary, atStart, of({ pending: 9999, waiting: 1 }))).toEqual({ kind: 'wait' })
  })

  it('makes each step larger than the one before', () => {
    const sizes: number[] = []
    let ramp = atStart
    for (let acted = 1; acted < 10_000; acted = ramp.allowed) {
      const judged = judgeRamp(canary, ramp, of({ pending: 10_000 - acted, succeeded: acted }))
      if (judged.kind !== 'continue') throw new Error(judged.kind)
      ramp = judged.ramp
      sizes.push(ramp.size)
    }
    expect(sizes).toEqual([10, 100, 1000, 10_000])
  })

  it('stops when a step fails entirely', () => {
    expect(judgeRamp(canary, atStart, of({ pending: 9999, failed: 1 }))).toEqual({
      kind: 'stop',
      why: 'all 1 letters of the step of 1 failed',
    })
    const second = step({ size: 10, allowed: 11, stepFrom: { succeeded: 1, failed: 0 } })
    expect(judgeRamp(canary, second, of({ succeeded: 1, failed: 10, pending: 1 }))).toMatchObject({
      kind: 'stop',
    })
  })

  it('does not count skipped letters as failed', () => {
    expect(judgeRamp(canary, atStart, of({ pending: 9999, skipped: 1 })).kind).toBe('continue')
  })

  it('judges the share from 50 outcomes on', () => {
    const third = step({ size: 100, allowed: 111, stepFrom: { succeeded: 11, failed: 0 } })
    const judge = (succeeded: number, failed: number): string =>
      judgeRamp(canary, third, of({ pending: 9900, succeeded, failed, waiting: 50 })).kind
    expect(judge(40, 9)).toBe('continue')
    expect(judge(41, 9)).toBe('stop')
    expect(judge(57, 3)).toBe('continue')
    expect(judge(56, 4)).toBe('stop')
  })

  it('names the figures and the limit', () => {
    const judged = judgeRamp(canary, step({ allowed: 1111 }), of({ succeeded: 90, failed: 10 }))
    expect(judged).toEqual({
      kind: 'stop',
      why: '10 of 100 letters failed, the limit is 5 % (maxFailureShare)',
    })
  })

  it('forgets earlier failures when the action is resumed', () => {
    const progress = of({ pending: 9000, succeeded: 500, failed: 500 })
    const again = startRamp(canary, progress)
    expect(again).toMatchObject({ size: 1, allowed: 1001 })
    expect(judgeRamp(canary, again, progress).kind).toBe('continue')
  })
})

import { describe, expect, it } from 'vitest'
import {
  addSample,
  countCauses,
  formatRate,
  rateOf,
  remainingMs,
  type ProgressSample,
} from '../../web/src/format/progress.ts'
import { emptyForm, planCall, whyNotReady } from '../../web/src/pages/bulk/plan-form.ts'

const filter = { queue: ['charge-card'] }

describe('the plan of a form', () => {
  it('has no limits if none are entered', () => {
    expect(planCall({ action: 'retry', filter }, emptyForm)).toEqual({
      name: 'planBulkAction',
      input: { action: 'retry', filter },
    })
  })

  it('has the limits, the window and the canary that are entered', () => {
    const form = {
      ...emptyForm,
      reason: ' fixed in 2.4 ',
      rate: 20,
      canary: true,
      windowFrom: '22:00',
      windowTo: '06:00',
    }
    expect(planCall({ action: 'retry', filter }, form).input).toEqual({
      action: 'retry',
      filter,
      reason: 'fixed in 2.4',
      rate: 20,
      canary: { first: 1, factor: 10, maxFailureShare: 0.05 },
      window: { from: '22:00', to: '06:00', timeZone: 'UTC' },
    })
  })

  it('leaves out what belongs to other actions', () => {
    const form = { ...emptyForm, mailbox: 'orders', priority: 'high' as const, addTags: ['a'] }
    expect(planCall({ action: 'archive', filter }, form).input).toEqual({
      action: 'archive',
      filter,
    })
    expect(planCall({ action: 'replay', filter }, form).input).toMatchObject({ to: 'orders' })
  })

  it('undoes an edit by its id', () => {
    const form = { ...emptyForm, reason: 'wrong currency' }
    expect(planCall({ action: 'undo', undoes: 'b1', filter }, form)).toEqual({
      name: 'planBulkUndo',
      input: { id: 'b1', reason: 'wrong currency' },
    })
  })

  it('says what is missing', () => {
    expect(whyNotReady('tag', emptyForm)).toBe('Enter a tag to add or to remove.')
    expect(whyNotReady('edit', { ...emptyForm, patch: '{}' })).toMatch(/array/)
    expect(whyNotReady('edit', { ...emptyForm, patch: '[' })).toBeDefined()
    expect(whyNotReady('edit', { ...emptyForm, patch: '[{"op":"remove","path":"/a"}]' })).toBe(
      undefined,
    )
  })
})

describe('the rate of a bulk action', () => {
  const samples = [0, 10, 20, 30, 40].map((s) => ({ atMs: s * 1000, done: s * s }))

  it('is that of the last 30 seconds', () => {
    const kept = samples.reduce<readonly ProgressSample[]>(addSample, [])
    expect(kept[0]).toEqual({ atMs: 10_000, done: 100 })
    expect(rateOf(kept)).toBe(50)
    expect(remainingMs(500, rateOf(kept))).toBe(10_000)
  })

  it('is not known from one sample, and nothing is promised without progress', () => {
    expect(rateOf(samples.slice(0, 1))).toBe(undefined)
    expect(remainingMs(500, undefined)).toBe(undefined)
    expect(remainingMs(500, 0)).toBe(undefined)
  })

  it('is written per second or per minute', () => {
    expect([120.4, 1.44, 0.05].map(formatRate)).toEqual([
      '120 letters/s',
      '1.4 letters/s',
      '3 letters/min',
    ])
  })
})

describe('failures', () => {
  it('that differ only in numbers and ids are one cause, the most frequent first', () => {
    const errors = ['order 1 has no lines', 'refused', 'order 22 has no lines']
    expect(countCauses(errors)).toEqual([
      { cause: 'order 1 has no lines', count: 2 },
      { cause: 'refused', count: 1 },
    ])
  })
})

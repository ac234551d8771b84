import { describe, expect, it } from 'vitest'
import { actionCode, counter } from '../../../src/stores/rows/codes.ts'
import { Deltas } from '../../../src/stores/rows/deltas.ts'

const row = { state: 0, category: 1, priority: 2, policy: 3, fingerprint: 'f' }

describe('Deltas', () => {
  it('counts a letter in its cell, its group and each of its tags', () => {
    const deltas = new Deltas()
    deltas.count(7, row, ['a', 'b'], 1)
    const found = deltas.changed().map(({ queue, kind, name, n }) => [queue, kind, name, n])
    expect(found).toEqual([
      [7, counter.cell, '', 1],
      [7, counter.group, 'f', 1],
      [7, counter.tag, 'a', 1],
      [7, counter.tag, 'b', 1],
    ])
    expect(new Set(deltas.changed().map(({ code }) => code)).size).toBe(1)
  })

  it('omits counts that add up to 0', () => {
    const deltas = new Deltas()
    deltas.count(7, row, ['a'], 1)
    deltas.count(7, row, [], -1)
    expect(deltas.changed().map(({ kind, name }) => [kind, name])).toEqual([[counter.tag, 'a']])
    deltas.tag(7, row, 'a', -1)
    expect(deltas.changed()).toEqual([])
  })

  it('separates queues, cells and names', () => {
    const deltas = new Deltas()
    deltas.count(1, row, [], 1)
    deltas.count(2, row, [], 1)
    deltas.count(2, { ...row, state: 2 }, [], 1)
    deltas.count(2, { ...row, fingerprint: 'g' }, [], 1)
    const cells = deltas.changed().filter(({ kind }) => kind === counter.cell)
    expect(cells.map(({ queue, n }) => [queue, n])).toEqual([
      [1, 1],
      [2, 2],
      [2, 1],
    ])
  })

  it('sums totals, and keeps the maximum number of retries', () => {
    const deltas = new Deltas()
    const action = actionCode('resolve')
    deltas.totals(1, action, 2, { n: 1, retries: 3, maxRetries: 3, backoffMs: 10 })
    deltas.totals(1, action, 2, { n: 2, retries: 4, maxRetries: 2, backoffMs: 5 })
    deltas.totals(1, action, 0, { n: 1, retries: 0, maxRetries: 0, backoffMs: 0 })
    const [sum, other, ...more] = deltas.changed()
    expect(sum).toMatchObject({ queue: 1, n: 3, retries: 7, maxRetries: 3, backoffMs: 15 })
    expect(other).toMatchObject({ queue: 1, n: 1 })
    expect(more).toEqual([])
    deltas.clear()
    expect(deltas.changed()).toEqual([])
  })
})

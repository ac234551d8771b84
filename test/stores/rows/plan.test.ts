import { describe, expect, it } from 'vitest'
import {
  keyless,
  planStages,
  readPage,
  type PlanInput,
  type Stage,
} from '../../../src/stores/rows/plan.ts'

const input: PlanInput<string> = {
  filter: {},
  order: 'newest',
  queues: ['orders'],
  states: [0, 3],
  ids: undefined,
  preferNarrow: false,
}

describe('planStages', () => {
  it('reads a list range for each queue and state', () => {
    expect(planStages(input)).toEqual([
      {
        key: 'id',
        isDown: true,
        ranges: [
          { index: 'list', queue: 'orders', state: 0 },
          { index: 'list', queue: 'orders', state: 3 },
        ],
      },
    ])
  })

  it('reads a narrower index if that has fewer letters', () => {
    const [stage] = planStages({ ...input, filter: { group: 'f1' }, preferNarrow: true })
    expect(stage!.ranges).toEqual([{ index: 'group', value: 'f1' }])
  })

  it('reads letters by id if there are too many ranges', () => {
    const queues = Array.from({ length: 300 }, (_, n) => `queue-${n}`)
    expect(planStages({ ...input, queues })[0]!.ranges).toEqual([{ index: 'all' }])
  })

  it('reads letters without a time last in an order by time', () => {
    expect(planStages({ ...input, order: 'due' }).map(({ key }) => key)).toEqual(['due', 'none'])
  })

  it('reads settled letters only if the filter asks for a time before which they settled', () => {
    const filter = { settledBefore: '2026-01-01T00:00:00.000Z' }
    expect(planStages({ ...input, order: 'settled', filter })).toHaveLength(1)
  })
})

describe('readPage', () => {
  const stages: Stage<string>[] = planStages({ ...input, order: 'due' })
  const all: Record<string, string[]> = { due: ['a', 'b', 'c'], none: ['d', 'e'] }

  /** Answers each request with at most `size` letters. */
  function read(limit: number, size: number, after?: { key: string; id: string }): unknown {
    const page = readPage<string, string>(stages, { limit, ...(after ? { after } : {}) })
    let turn = page.next()
    while (!turn.done) {
      const { stage, after: from } = turn.value
      const rest = all[stage.key]!.filter((id) => !from || id > from.id)
      const key = stage.key === 'none' ? keyless : '1'
      const found = rest.slice(0, size).map((id) => ({ item: id, bytes: 0, place: { key, id } }))
      const next = rest.length > size ? { next: found.at(-1)!.place } : {}
      turn = page.next({ found, ...next })
    }
    return turn.value
  }

  it.each([1, 2, 10])('joins the steps of all stages when a step has %i letters', (size) => {
    expect(read(10, size)).toEqual({ items: ['a', 'b', 'c', 'd', 'e'] })
  })

  it('ends a partial page after some steps, and continues it with the next one', () => {
    const many = Array.from({ length: 100 }, (_, n) => String(n).padStart(3, '0'))
    const [stage] = planStages(input)
    const read = (after?: { key: string; id: string }): { steps: number; next?: unknown } => {
      const page = readPage<string, string>([stage!], {
        limit: 10,
        partial: true,
        ...(after ? { after } : {}),
      })
      let turn = page.next()
      let steps = 0
      while (!turn.done) {
        steps++
        const { after: from } = turn.value
        const id = many.find((one) => !from || one > from.id)
        // No step finds a letter.
        turn = page.next(id === undefined ? { found: [] } : { found: [], next: { key: id, id } })
      }
      return { steps, ...turn.value }
    }
    expect(read()).toEqual({ steps: 32, items: [], next: { key: '031', id: '031' } })
    expect(read({ key: '090', id: '090' })).toEqual({ steps: 10, items: [] })
  })

  it('ends at the limit and says where the next page begins', () => {
    expect(read(4, 2)).toEqual({ items: ['a', 'b', 'c', 'd'], next: { key: keyless, id: 'd' } })
  })

  it('continues in the last stage', () => {
    expect(read(10, 2, { key: keyless, id: 'd' })).toEqual({ items: ['e'] })
  })

  it('continues in the first stage', () => {
    expect(read(10, 2, { key: '1', id: 'b' })).toEqual({ items: ['c', 'd', 'e'] })
  })
})

import { describe, expect, it } from 'vitest'
import type { FilterInput } from '../../src/api/index.ts'
import { parseSearch, stringifySearch } from '../../web/src/app/search-params.ts'
import { filterParts, matchesFilter, withoutPart } from '../../web/src/format/filter.ts'

const filter: FilterInput = {
  queue: ['charge-card', 'refund'],
  state: ['parked'],
  metadata: { order: 12, region: 'eu' },
  tag: 'vip',
}

describe('the conditions of a filter', () => {
  it('are one for each value of a list, each key of the metadata and each other field', () => {
    expect(filterParts(filter).map(({ label, text }) => `${label}: ${text}`)).toEqual([
      'queue: charge-card',
      'queue: refund',
      'state: parked',
      'tag: vip',
      'metadata order: 12',
      'metadata region: eu',
    ])
  })

  it('can be removed one by one until the filter is empty', () => {
    const left = filterParts(filter).reduce(withoutPart, filter)
    expect(left).toEqual({})
  })

  it('leave the other values of the same field when one is removed', () => {
    const [charge] = filterParts(filter)
    expect(withoutPart(filter, charge!)).toEqual({ ...filter, queue: ['refund'] })
  })

  it('survive the address of a page', () => {
    const search = { queue: ['a b', 'c&d'], state: 'parked', metadata: { 'order.id': 'x=1' } }
    expect(parseSearch(stringifySearch(search))).toEqual(search)
  })
})

describe('a new letter', () => {
  const letter = {
    queue: 'charge-card',
    state: 'pending',
    category: 'timeout',
    priority: 'high',
    fingerprint: 'v1-1',
    tags: ['vip'],
    tenant: 'acme',
    policy: { kind: 'fixed' },
    deadLetteredAt: '2026-11-18T12:00:00.000Z',
    metadata: { order: 12 },
    failure: { name: 'TimeoutError', message: 'payments did not answer', code: 'ETIMEDOUT' },
  }
  const matching: FilterInput[] = [
    {},
    { queue: 'charge-card' },
    { queue: ['refund', 'charge-card'], state: ['pending', 'parked'] },
    { tag: 'vip', tenant: 'acme', metadata: { order: 12 }, group: ['v1-1'] },
    { text: 'TIMEDOUT' },
    { since: '2026-11-18T12:00:00.000Z', until: '2026-11-18T12:00:01.000Z' },
  ]
  const other: FilterInput[] = [
    { queue: 'refund' },
    { state: 'parked' },
    { tag: 'bulk' },
    { metadata: { order: '12' } },
    { text: 'refused' },
    { until: '2026-11-18T12:00:00.000Z' },
    { ids: ['1'] },
  ]

  it.each(matching)('belongs to a list with the filter %j', (filter) => {
    expect(matchesFilter(letter, filter)).toBe(true)
  })

  it.each(other)('does not belong to a list with the filter %j', (filter) => {
    expect(matchesFilter(letter, filter)).toBe(false)
  })
})

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  matches,
  orders,
  readCursor,
  sortKey,
  writeCursor,
  type LetterFilter,
} from '../../src/letter/query.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const letter = aLetter({
  id: 'letter-1',
  queue: 'Orders',
  state: 'parked',
  reason: 'permanent',
  category: 'network',
  priority: 'high',
  policy: { kind: 'fixed', delayMs: 5 },
  fingerprint: 'group-1',
  tags: ['blue', 'vip'],
  lane: 'customer-1',
  tenant: 'acme',
  failure: {
    name: 'FetchError',
    message: 'Could not reach HOST',
    code: 'ECONNREFUSED',
    causes: [],
    at: '2026-01-01T00:00:00.000Z',
  },
  deadLetteredAt: '2026-01-02T00:00:00.000Z',
  settledAt: '2026-01-03T00:00:00.000Z',
  expiresAt: '2026-02-01T00:00:00.000Z',
  dependsOn: ['letter-0'],
})

describe('matches', () => {
  it.each<[LetterFilter, boolean]>([
    [{}, true],
    [{ ids: ['letter-1', 'other'] }, true],
    [{ ids: [] }, false],
    [{ ids: ['other'] }, false],
    [{ queue: 'Orders' }, true],
    [{ queue: 'orders' }, false],
    [{ queue: ['a', 'Orders'] }, true],
    [{ queue: [] }, false],
    [{ state: 'parked' }, true],
    [{ state: ['pending', 'parked'] }, true],
    [{ state: 'pending' }, false],
    [{ category: 'network' }, true],
    [{ category: ['timeout', 'unknown'] }, false],
    [{ priority: ['high', 'critical'] }, true],
    [{ priority: 'low' }, false],
    [{ policy: 'fixed' }, true],
    [{ policy: 'never' }, false],
    [{ reason: 'permanent' }, true],
    [{ reason: 'operator' }, false],
    [{ group: 'group-1' }, true],
    [{ group: 'group' }, false],
    [{ tag: 'vip' }, true],
    [{ tag: 'vi' }, false],
    [{ lane: 'customer-1' }, true],
    [{ lane: 'customer-2' }, false],
    [{ tenant: 'acme' }, true],
    [{ tenant: 'other' }, false],
    [{ text: 'order' }, true],
    [{ text: 'reach host' }, true],
    [{ text: 'fetcherror' }, true],
    [{ text: 'econn' }, true],
    [{ text: '' }, true],
    [{ text: 'blue' }, false],
    [{ since: '2026-01-02T00:00:00.000Z' }, true],
    [{ since: '2026-01-02T00:00:00.001Z' }, false],
    [{ until: '2026-01-02T00:00:00.000Z' }, false],
    [{ until: '2026-01-02T00:00:00.001Z' }, true],
    [{ settledBefore: '2026-01-03T00:00:00.000Z' }, false],
    [{ settledBefore: '2026-01-03T00:00:00.001Z' }, true],
    [{ expiresBefore: '2026-02-01T00:00:00.000Z' }, false],
    [{ expiresBefore: '2026-02-01T00:00:00.001Z' }, true],
    [{ queue: 'Orders', state: 'parked', tag: 'blue', text: 'host' }, true],
    [{ queue: 'Orders', state: 'parked', tag: 'blue', text: 'nowhere' }, false],
  ])('returns for %o: %s', (filter, expected) => {
    expect(matches(letter, filter)).toBe(expected)
  })

  it('excludes archived letters unless the filter names their state or id', () => {
    const archived = aLetter({ id: 'gone', state: 'archived' })
    expect(matches(archived, {})).toBe(false)
    expect(matches(archived, { queue: archived.queue })).toBe(false)
    expect(matches(archived, { state: 'archived' })).toBe(true)
    expect(matches(archived, { ids: ['gone'] })).toBe(true)
  })

  it('is false for a timestamp that the letter does not have', () => {
    const pending = aLetter()
    expect(matches(pending, { settledBefore: '2099-01-01T00:00:00.000Z' })).toBe(false)
    expect(matches(pending, { expiresBefore: '2099-01-01T00:00:00.000Z' })).toBe(false)
  })
})

describe('sortKey', () => {
  it('puts letters without the timestamp last', () => {
    const far = '9999-12-31T23:59:59.999Z'
    expect(
      sortKey(aLetter({ retryAt: far }), 'due') < sortKey(aLetter({ state: 'parked' }), 'due'),
    ).toBe(true)
    expect(sortKey(aLetter({ state: 'parked' }), 'settled') < sortKey(aLetter(), 'settled')).toBe(
      true,
    )
    expect(sortKey(letter, 'newest')).toBe('letter-1')
  })
})

describe('a cursor', () => {
  const ascii = fc.string({ unit: 'binary-ascii' })

  it('is read as the position that was written', () => {
    fc.assert(
      fc.property(fc.constantFrom(...orders), ascii, ascii, (order, key, id) => {
        const position = { order, key, id }
        expect(readCursor(writeCursor(position), order)).toEqual(position)
      }),
    )
  })

  it('is undefined in another order', () => {
    const text = writeCursor({ order: 'due', key: 'k', id: 'i' })
    expect(readCursor(text, 'newest')).toBeUndefined()
  })

  it.each([
    '',
    '!!!',
    'null',
    btoa('null'),
    btoa('{}'),
    btoa('["due"]'),
    btoa('["due",1,2]'),
    btoa('["due","k",null]'),
    btoa('["due","k","i","more"]'),
    btoa('['.repeat(10_000)),
    '\ud800',
  ])('is undefined for the invalid string %.40j', (text) => {
    expect(readCursor(text, 'due')).toBeUndefined()
  })

  it('is undefined for random strings', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => readCursor(text, 'due') === undefined),
    )
  })
})

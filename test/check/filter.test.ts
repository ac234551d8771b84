import { describe, expect, it } from 'vitest'
import {
  checkFilter,
  checkQuery,
  checkRemoval,
  checkSearch,
  checkTally,
} from '../../src/check/filter.ts'
import type { LetterFilter, LetterQuery } from '../../src/letter/query.ts'
import type { SearchOptions, TallyKey } from '../../src/store.ts'

const problem = (act: () => void): string => {
  try {
    act()
    return 'none'
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_INPUT' })
    return (error as Error).message
  }
}

describe('checkFilter', () => {
  const check = (filter: object): string => problem(() => checkFilter(filter))

  it('accepts every key with a value of its type', () => {
    const at = '2026-01-01T00:00:00.000Z'
    const full: Required<LetterFilter> = {
      ids: ['a'],
      queue: ['a', 'b'],
      state: 'pending',
      category: ['network'],
      priority: 'low',
      policy: 'never',
      reason: 'permanent',
      group: 'f',
      tag: 't',
      lane: 'l',
      tenant: 't',
      sourceId: 'wf_1',
      metadata: { a: 'x', b: 1, c: true, d: null },
      text: '',
      since: at,
      until: at,
      settledBefore: at,
      expiresBefore: at,
      dependent: false,
    }
    expect(check(full)).toBe('none')
    expect(check({})).toBe('none')
    expect(check({ queue: undefined, unknown: undefined, state: [] })).toBe('none')
  })

  it.each([
    [{ status: 'resolved' }, 'unknown key "status" in the letter filter: did you mean "state"?'],
    [{ queu: 'a' }, 'unknown key "queu" in the letter filter: did you mean "queue"?'],
    [{ taskId: 'wf_1' }, 'unknown key "taskId" in the letter filter: did you mean "sourceId"?'],
    [{ limit: 5 }, 'unknown key "limit" in the letter filter'],
    [{ state: 'queued' }, 'unknown state "queued": did you mean "pending"?'],
    [{ state: ['abandoned'] }, 'unknown state "abandoned": did you mean "exhausted"?'],
    [{ state: 'manual_review' }, 'unknown state "manual_review": did you mean "parked"?'],
    [{ state: 'completed' }, 'unknown state "completed": did you mean "resolved"?'],
    [{ state: 'constructor' }, 'unknown state "constructor": known: pending, retrying'],
    [{ category: 'netwrk' }, 'unknown category "netwrk": did you mean "network"?'],
    [{ reason: ['permanent'] }, 'reason must be a string, got an array'],
    [{ ids: 'abc' }, 'ids must be an array of strings, got "abc"'],
    [{ queue: [1] }, 'queue must be an array of strings, got an array'],
    [{ since: 'yesterday' }, 'since must be a timestamp like 2026-01-01T00:00:00.000Z'],
    [{ until: new Date(0) }, 'until must be a timestamp'],
    [{ dependent: 1 }, 'dependent must be true or false, got 1'],
    [{ metadata: {} }, 'metadata must name at least one key'],
    [{ metadata: { a: [1] } }, 'metadata.a must be a string, a finite number, true, false or null'],
  ])('rejects %j', (filter, message) => {
    expect(check(filter)).toContain(message)
  })

  it.each([[null], ['pending'], [['a']]])('rejects %j, which is not an object', (filter) => {
    expect(check(filter as unknown as object)).toContain('the letter filter must be an object')
  })
})

describe('checkQuery', () => {
  const check = (query: object): string => problem(() => checkQuery(query))

  it('accepts a filter with an order, a limit and a cursor', () => {
    const query: LetterQuery = { order: 'due', limit: 0, cursor: 'c', payload: true, queue: 'a' }
    expect(check(query)).toBe('none')
  })

  it.each([
    [{ limit: 'x' }, 'limit must be an integer from 0 to 1000, got "x"'],
    [{ limit: 1001 }, 'limit must be an integer from 0 to 1000, got 1001'],
    [{ order: 'newst' }, 'unknown order "newst": did you mean "newest"?'],
    [{ pagesize: 5 }, 'unknown key "pagesize" in the letter query'],
    [{ payload: 'yes' }, 'payload must be true or false, got "yes"'],
  ])('rejects %j', (query, message) => {
    expect(check(query)).toContain(message)
  })
})

describe('checkRemoval', () => {
  it.each([[{}], [{ queue: undefined }]])('rejects %j, which has no condition', (filter) => {
    expect(problem(() => checkRemoval(filter as LetterFilter))).toContain(
      'would remove every letter',
    )
  })

  it('rejects an unknown key before it counts conditions', () => {
    const filter = { status: 'resolved' } as LetterFilter
    expect(problem(() => checkRemoval(filter))).toContain('did you mean "state"?')
  })
})

describe('checkTally', () => {
  it('rejects an unknown key to count by', () => {
    expect(problem(() => checkTally('sevrity' as TallyKey, {}))).toBe(
      'unknown tally key "sevrity": did you mean "severity"?',
    )
    expect(problem(() => checkTally('severity', {}))).toBe('none')
  })
})

describe('checkSearch', () => {
  it.each([
    [{ amung: {} }, 'did you mean "among"?'],
    [{ among: { status: 'x' } }, 'did you mean "state"?'],
    [{ limit: -1 }, 'limit must be an integer'],
    [{ payload: 1 }, 'payload must be true or false'],
  ])('rejects %j', (options, message) => {
    expect(problem(() => checkSearch('disk', options as SearchOptions))).toContain(message)
  })
})

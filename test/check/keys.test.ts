import { describe, expect, it } from 'vitest'
import { checkKeys, checkNames, checkOneOf, keysOf } from '../../src/check/keys.ts'

const known = keysOf<{ state?: string; queue?: string }>({ state: true, queue: true })

describe('checkKeys', () => {
  it('accepts known keys, and unknown keys whose value is undefined', () => {
    expect(() =>
      checkKeys('letter filter', { state: 'pending', x: undefined }, known),
    ).not.toThrow()
  })

  it('rejects an unknown key and names the nearest known one', () => {
    expect(() => checkKeys('letter filter', { status: 'resolved' }, known)).toThrow(
      'unknown key "status" in letter filter: did you mean "state"?',
    )
  })

  it('lists the known keys when none is near', () => {
    expect(() => checkKeys('letter filter', { zzz: 1 }, known)).toThrow('known: state, queue')
  })

  it('suggests our name for a name of an older system', () => {
    const renamed = { operationType: 'queue' }
    expect(() => checkKeys('letter filter', { operationType: 'x' }, known, { renamed })).toThrow(
      'did you mean "queue"?',
    )
  })

  it.each([[null], [undefined], ['x'], [[1]], [7]])(
    'rejects %j, which is not an object',
    (value) => {
      expect(() => checkKeys('letter filter', value, known)).toThrow(
        'letter filter must be an object',
      )
    },
  )

  it('treats names that every object inherits as unknown', () => {
    const hostile = JSON.parse('{"__proto__": 1, "constructor": 2}') as object
    expect(() => checkKeys('letter filter', hostile, known)).toThrow('unknown key "__proto__"')
  })
})

describe('checkOneOf', () => {
  it('accepts one allowed value or a list of them', () => {
    expect(() => checkOneOf('state', 'pending', ['pending', 'parked'])).not.toThrow()
    expect(() => checkOneOf('state', ['pending', 'parked'], ['pending', 'parked'])).not.toThrow()
  })

  it('rejects any other value and names the nearest allowed one', () => {
    expect(() => checkOneOf('state', ['parked', 'pendin'], ['pending', 'parked'])).toThrow(
      'unknown state "pendin": did you mean "pending"?',
    )
    expect(() => checkOneOf('state', 'queued', ['pending', 'parked'])).toThrow(
      'unknown state "queued": known: pending, parked',
    )
    expect(() => checkOneOf('state', 7, ['pending'])).toThrow('state must be a string, got number')
  })
})

describe('checkNames', () => {
  it.each<[object | undefined]>([
    [undefined],
    [{}],
    [{ toString: 1, valueOf: {} }],
    [{ constructor: { maxRetries: 1 } }],
  ])('accepts %j', (map) => {
    expect(() => checkNames('option "queues"', map)).not.toThrow()
  })

  it.each([
    ['__proto__', JSON.parse('{"__proto__":{}}') as object],
    ['constructor', { constructor: () => 1 }],
  ])('rejects %s, which a schema would not check', (name, map) => {
    expect(() => checkNames('option "queues"', map)).toThrow(
      `option "queues": "${name}" is not allowed as a name, use another one`,
    )
  })
})

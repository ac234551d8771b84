import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { whyReplayRefused, withReplayKey } from '../../src/letter/replay-safety.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const message = { kind: 'mailbox', mailbox: 'm', messageId: '1', deliveries: 1 } as const
const operation = { kind: 'operation', type: 'charge' } as const

const cases: [name: string, fields: Partial<DeadLetter>, key: string | undefined][] = [
  ['a message with the header', { source: message, headers: { 'Idempotency-Key': 'k' } }, 'k'],
  ['a message without it', { source: message, dedupeKey: 'hash of this replay' }, undefined],
  [
    'a message with an empty one',
    { source: message, headers: { 'idempotency-key': '' } },
    undefined,
  ],
  ['an operation with a dedupeKey', { source: operation, dedupeKey: 'order-1' }, 'order-1'],
  ['an operation without one', { source: operation }, undefined],
]

describe('replay safety', () => {
  it.each(cases)('idempotent-key: %s', (_name, fields, key) => {
    const letter = aLetter(fields)
    const why = whyReplayRefused(letter, 'idempotent-key')
    const sent = withReplayKey(letter, 'idempotent-key')
    if (key === undefined) {
      expect(why).toContain('it has no idempotency-key header')
      expect(sent).toBe(letter)
    } else {
      expect(why).toBeUndefined()
      expect(sent).toEqual({ ...letter, headers: { 'idempotency-key': key } })
    }
  })

  it('keeps other headers', () => {
    const letter = aLetter({ source: operation, dedupeKey: 'k', headers: { a: 'b' } })
    expect(withReplayKey(letter, 'idempotent-key').headers).toEqual({
      a: 'b',
      'idempotency-key': 'k',
    })
  })

  it.each(cases)('safe allows, never refuses: %s', (_name, fields) => {
    const letter = aLetter(fields)
    expect(whyReplayRefused(letter, 'safe')).toBeUndefined()
    expect(withReplayKey(letter, 'safe')).toBe(letter)
    expect(whyReplayRefused(letter, 'never')).toContain('option replay: never')
  })
})

import { describe, expect, it } from 'vitest'
import { columns, at } from '../../../src/stores/rows/columns.ts'
import { decodeLetter, decodeSummary } from '../../../src/stores/rows/decode.ts'
import { encodeLetter } from '../../../src/stores/rows/encode.ts'
import { mixedLetters } from '../../../src/testing/store/mixed.ts'
import { aLetter } from '../../../src/testing/index.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'

function roundTrip(letter: DeadLetter): DeadLetter {
  const { queue, row, body } = encodeLetter(letter)
  return decodeLetter({ queue, row, ...body })
}

describe('encodeLetter', () => {
  it.each(mixedLetters(36).map((letter) => [letter.state, letter] as const))(
    'encodes a letter that is %s so that decodeLetter restores it',
    (_, letter) => {
      expect(roundTrip(letter)).toEqual(letter)
    },
  )

  it('encodes as many values as there are columns', () => {
    expect(encodeLetter(aLetter()).row).toHaveLength(columns.length)
  })

  it('rejects an id that is not a UUID', () => {
    expect(() => encodeLetter(aLetter({ id: 'order-1' }))).toThrow(
      'id must be a UUID in lower case, got "order-1"',
    )
  })

  it('rejects a number that JSON cannot represent', () => {
    expect(() => encodeLetter(aLetter({ retries: NaN }))).toThrow(
      'retries must be a finite number, got NaN',
    )
  })

  it('rejects a string that is not a timestamp', () => {
    expect(() => encodeLetter(aLetter({ updatedAt: '2026-01-01' }))).toThrow(
      '"2026-01-01" is not a timestamp',
    )
  })
})

describe('decodeLetter', () => {
  it('reports a payload that does not match its checksum', () => {
    const { queue, row, body } = encodeLetter(aLetter())
    const bytes = Uint8Array.from(body.bytes, (byte) => byte ^ 1)
    expect(decodeLetter({ queue, row, ...body, bytes }).corrupt).toBe(
      'the payload does not match its checksum',
    )
  })

  it('reports an origin that is missing, and returns the rest', () => {
    const letter = aLetter()
    const { queue, row, body } = encodeLetter(letter)
    const { corrupt, id, state } = decodeSummary({ queue, row, ...body, origin: null })
    expect({ corrupt, id, state }).toEqual({
      corrupt: 'the body is missing',
      id: letter.id,
      state: letter.state,
    })
  })

  it('reports a column that is not JSON, and reads the other columns', () => {
    const letter = aLetter({ tags: ['a'] })
    const { queue, row, body } = encodeLetter(letter)
    row[at.tags] = '[oops'
    const decoded = decodeLetter({ queue, row, ...body })
    expect(decoded.corrupt).toBe('the row is not readable as JSON')
    expect(decoded.payload.bytes).toEqual(letter.payload.bytes)
  })
})

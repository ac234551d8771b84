import { describe, expect, it } from 'vitest'
import {
  metadataTexts,
  needsReading,
  sourceKey,
  sourceKeyIn,
} from '../../../src/stores/rows/source-key.ts'

describe('sourceKey', () => {
  it.each([
    ['wf_1', 'wf_1'],
    ['x'.repeat(200), 'x'.repeat(200)],
    ['x'.repeat(201), 'x'.repeat(200)],
    [`x${'🦊'.repeat(5000)}`, `x${'🦊'.repeat(99)}`],
    ['a\ud800', 'a\ufffd'],
  ])('truncates between characters and is well-formed', (id, key) => {
    expect(sourceKey(id)).toBe(key)
  })
})

describe('sourceKeyIn', () => {
  it('reads the origin of a stored letter', () => {
    const source = { kind: 'mailbox', mailbox: 'm', messageId: 'm-1', deliveries: 1 }
    expect(sourceKeyIn(JSON.stringify({ source }))).toBe('m-1')
  })

  it.each(['', '{', 'null', '{}', '{"source":{"kind":"workflow","taskId":5}}'])(
    'is undefined for %j',
    (origin) => {
      expect(sourceKeyIn(origin)).toBeUndefined()
    },
  )
})

describe('needsReading', () => {
  it.each([
    [{ queue: 'a' }, false],
    [{ sourceId: 'wf_1' }, false],
    [{ sourceId: 'x'.repeat(201) }, true],
    [{ text: '' }, true],
    [{ metadata: { a: 1 } }, true],
  ])('returns for %j: %s', (filter, expected) => {
    expect(needsReading(filter)).toBe(expected)
  })
})

describe('metadataTexts', () => {
  it('returns the JSON of each key and value', () => {
    const metadata = { customer: 'a "b"', amount: 5, none: null }
    const rest = JSON.stringify({ occurrences: 1, metadata: { x: 1, ...metadata } })
    for (const text of metadataTexts({ metadata })) expect(rest).toContain(text)
    expect(metadataTexts({ metadata })).toHaveLength(3)
  })
})

import { expect, it } from 'vitest'
import { lapse } from '../../../src/letter/moves.ts'
import type { HistoryEntry } from '../../../src/letter/letter.ts'
import { decodeHistory, encodeEntry } from '../../../src/stores/rows/history-column.ts'

const at = '2026-01-01T00:00:00.000Z'
const entries: HistoryEntry[] = [
  { at, actor: 'capture', action: 'capture', from: null, to: 'pending' },
  { at, actor: 'worker-0', action: 'resolve', from: 'retrying', to: 'resolved', epoch: 3 },
  {
    at,
    actor: 'worker "1"\n',
    action: 'exhaust',
    from: 'retrying',
    to: 'exhausted',
    failure: { name: 'Error', message: 'line 1\nline 2', category: 'timeout' },
  },
  { at, actor: 'ada', action: 'retry', from: 'parked', to: 'pending', note: 'try again' },
]

it('restores the entries of a column', () => {
  expect(decodeHistory(entries.map(encodeEntry).join('\n'))).toEqual(entries)
})

it('reads an empty column as no entries', () => {
  expect([decodeHistory(null), decodeHistory('')]).toEqual([[], []])
})

it('restores the note of a lapsed lease from its end', () => {
  const entry = lapse({ worker: 'worker-0', epoch: 2, expiresAt: at }, at)
  const line = JSON.stringify([Date.parse(at), 'worker-0', 2, 1, 1, 2, null, Date.parse(at)])
  expect(decodeHistory(line)).toEqual([entry])
})

it('returns undefined for a column that cannot be read', () => {
  expect(decodeHistory('[1,')).toBeUndefined()
})

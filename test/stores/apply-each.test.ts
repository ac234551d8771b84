import { expect, it } from 'vitest'
import { bulkMovesFor } from '../../src/letter/bulk-moves.ts'
import { applyEach, canApplyAtOnce } from '../../src/stores/apply-each.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter } from '../../src/testing/index.ts'

const moves = bulkMovesFor('archive', { at: '2026-01-02T00:00:00.000Z', actor: 'ada' })

it('applyEach returns the results of more letters than one page in order', async () => {
  const store = memoryStore()
  await store.open()
  const letters = Array.from({ length: 2100 }, () => aLetter())
  await store.add(letters.filter((_, n) => n % 1000 !== 7))
  const results = await applyEach(store, letters, moves)
  const expected = letters.map((_, n) => (n % 1000 === 7 ? 'missing' : 'written'))
  expect(results).toEqual(expected)
  await store.close()
})

const [one, other] = [aLetter(), aLetter()]

it.each([
  { letters: [], expected: true },
  { letters: [one, other], expected: true },
  { letters: [one, other, one], expected: false },
  { letters: [one, { ...one, version: 2 }], expected: false },
  { letters: [one, { ...other, id: 'order-1' }], expected: false },
])('canApplyAtOnce of $letters.length letters is $expected', ({ letters, expected }) => {
  expect(canApplyAtOnce(letters)).toBe(expected)
})

import { expect, it } from 'vitest'
import { bulkMovesFor } from '../../src/letter/bulk-moves.ts'
import { applyEach, applyToDistinct } from '../../src/stores/apply-each.ts'
import type { ApplyResult } from '../../src/store.ts'
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

it.each<[string, number[], ApplyResult[]]>([
  ['distinct letters', [0, 1], ['written', 'written']],
  ['a letter twice', [0, 1, 0], ['written', 'written', 'conflict']],
  ['a missing letter twice', [2, 2], ['missing', 'missing']],
  ['no letter', [], []],
])('applyToDistinct passes on each letter once: %s', async (_, positions, expected) => {
  const letters = [aLetter(), aLetter(), aLetter()]
  const list = positions.map((position, n) => ({ ...letters[position]!, version: n + 1 }))
  const results = await applyToDistinct(list, async (distinct) => {
    const ids = distinct.map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)])
    return distinct.map(({ id }) => (id === letters[2]!.id ? 'missing' : 'written'))
  })
  expect(results).toEqual(expected)
})

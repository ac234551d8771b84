import { expect, it } from 'vitest'
import { lineage, originalIdOf, replaysOf } from '../../src/letter/lineage.ts'

it.each([
  [{}, 0],
  [{ [lineage.replays]: '2' }, 2],
  [{ [lineage.replays]: '-1' }, 0],
  [{ [lineage.replays]: 'often' }, 0],
  [{ [lineage.replays]: '99999999999' }, 0],
])('%j was replayed %i times', (headers, replays) => {
  expect(replaysOf(headers)).toBe(replays)
})

it('a message in its first life is its own original', () => {
  expect(originalIdOf({}, 'm-1')).toBe('m-1')
  expect(originalIdOf({ [lineage.originalId]: '' }, 'm-1')).toBe('m-1')
  expect(originalIdOf({ [lineage.originalId]: 'm-0' }, 'm-1')).toBe('m-0')
})

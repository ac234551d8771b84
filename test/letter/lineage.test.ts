import { expect, it } from 'vitest'
import { lineage, originalIdOf, replaysOf } from '../../src/letter/lineage.ts'

it.each([
  [{}, 0],
  [{ [lineage.replays]: '2' }, 2],
  [{ [lineage.replays]: '-1' }, 0],
  [{ [lineage.replays]: 'often' }, 0],
  [{ [lineage.replays]: '99999999999' }, 0],
])('replaysOf reads %j as %i', (headers, replays) => {
  expect(replaysOf(headers)).toBe(replays)
})

it('originalIdOf returns the id of the message itself if it was never replayed', () => {
  expect(originalIdOf({}, 'm-1')).toBe('m-1')
  expect(originalIdOf({ [lineage.originalId]: '' }, 'm-1')).toBe('m-1')
  expect(originalIdOf({ [lineage.originalId]: 'm-0' }, 'm-1')).toBe('m-0')
})

import { expect, it } from 'vitest'
import { phaseAt } from './phases.ts'

const seen = (onServer: boolean, ms: number): Set<string> =>
  new Set(Array.from({ length: ms / 100 }, (_, step) => phaseAt(step * 100, onServer)))

it('a store without a server has no server phase', () => {
  expect(seen(false, 60_000)).toEqual(new Set(['processes', 'quiet']))
})

it('faults hit the server first, then processes, then nothing, repeatedly', () => {
  expect([...seen(true, 60_000)]).toEqual(['server', 'processes', 'quiet'])
  expect([...seen(true, 8000)]).toEqual(['server'])
  expect(phaseAt(15_000, true)).toBe('server')
})

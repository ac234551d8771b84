import { describe, expect, it } from 'vitest'
import { lacksPrivate } from '../servers/private.ts'
import { crashBulk } from './bulk/crash.ts'
import { crashUndo } from './bulk/undo.ts'

const stores = [
  { store: 'sqlite', lacking: undefined },
  { store: 'postgres', lacking: lacksPrivate.postgres() },
  { store: 'redis', lacking: lacksPrivate.redis() },
] as const

describe('a bulk retry', () => {
  for (const { store, lacking } of stores)
    it.skipIf(lacking)(
      `finishes on ${store} with exact results after kills${lacking ? ` (${lacking})` : ''}`,
      { timeout: 300_000 },
      async () => {
        const own = store === 'sqlite' ? {} : { store }
        const result = await crashBulk({ ...own, letters: 1500, kills: 2, seed: 5 })
        expect(result.problems).toEqual([])
        expect(result.kills).toBe(2)
        expect(result.action.progress).toMatchObject({ pending: 0, waiting: 0, skipped: 0 })
      },
    )
})

describe('a bulk edit and its undo', () => {
  it('change each letter once despite kills', { timeout: 300_000 }, async () => {
    const { edit, undo, kills, problems } = await crashUndo({ letters: 1500, kills: 2, seed: 5 })
    expect(problems).toEqual([])
    expect(kills).toBe(4)
    for (const { progress } of [edit, undo])
      expect(progress).toMatchObject({ succeeded: 1500, pending: 0 })
  })
})

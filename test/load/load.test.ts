import { describe, expect, it } from 'vitest'
import { atDepth } from '../depth.ts'
import { backend } from '../servers/servers.ts'
import { load } from './load.ts'
import { formatMemory, memoryGrowth } from './memory.ts'
import { streamLines } from './streams.ts'

const postgres = backend('postgres')
const stores = [
  { name: 'SQLite', own: {}, missing: undefined },
  { name: 'Postgres', own: { store: postgres.url }, missing: postgres.missing },
]

describe('a server under load', () => {
  for (const { name, own, missing } of stores)
    it.skipIf(missing)(
      `answers every request and stores every capture once in ${name}`,
      { timeout: 240_000 },
      async () => {
        // Without a spool, which answers 503 when a busy machine needs seconds for a write.
        const set = ['onStoreDown=fail']
        const result = await load({ ...own, seconds: atDepth(1, 5), clients: 20, seed: 1, set })
        const { lost, repeated, problems, letters, acknowledged, statuses } = result
        expect({ lost, repeated, problems }).toEqual({ lost: [], repeated: [], problems: [] })
        expect(acknowledged).toBeGreaterThan(0)
        expect(letters).toBe(acknowledged)
        expect(Object.keys(statuses).filter((status) => status >= '500')).toEqual([])
      },
    )

  it('streams captures, exports and imports', { timeout: 240_000 }, async () => {
    const { captured, exported, imported } = await streamLines(1000)
    expect({ captured, exported, imported }).toEqual({
      captured: 1000,
      exported: 1000,
      imported: 1000,
    })
  })
})

describe('memoryGrowth', () => {
  it('finds memory that keeps growing, and ignores the start', () => {
    const mebibytes = (all: number[]): number[] => all.map((one) => one * 1024 * 1024)
    expect(memoryGrowth(mebibytes([50, 300, 310, 305, 320, 300]))).toBeUndefined()
    const growing = mebibytes([100, 200, 300, 400, 500, 600])
    expect(memoryGrowth(growing)).toBe('resident memory grew from 400 MiB to 600 MiB')
    expect(formatMemory(1024 * 1024)).toBe('1 MiB')
  })
})

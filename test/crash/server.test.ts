import { describe, expect, it } from 'vitest'
import { isDeep } from '../depth.ts'
import { backend } from '../servers/servers.ts'
import { crashServer } from './server/crash.ts'

const postgres = backend('postgres')
const stores = [
  { name: 'SQLite', own: {}, missing: undefined },
  { name: 'Postgres', own: { store: postgres.url }, missing: postgres.missing },
]
const size = { seconds: 0.5, clients: 8, seed: 7, hasBug: false }
const timeout = 240_000

describe('a server that ends under load', () => {
  for (const { name, own, missing } of stores) {
    it.skipIf(missing)(
      `loses and repeats nothing in ${name} when it is killed`,
      { timeout },
      async () => {
        const result = await crashServer({ ...size, ...own, signals: 'kill' })
        const { lost, repeated, problems } = result
        expect({ lost, repeated, problems }).toEqual({ lost: [], repeated: [], problems: [] })
        expect(result.kills).toBeGreaterThan(0)
        expect(result.acknowledged).toBeGreaterThan(0)
      },
    )

    // The server does the same whatever its store is.
    if (name !== 'SQLite' && !isDeep) continue
    it.skipIf(missing)(
      `answers what it has begun in ${name} when it is terminated`,
      { timeout },
      async () => {
        const result = await crashServer({ ...size, ...own, signals: 'terminate' })
        const { lost, repeated, problems, unansweredButStored } = result
        expect({ lost, repeated, problems, unansweredButStored }).toEqual({
          lost: [],
          repeated: [],
          problems: [],
          unansweredButStored: 0,
        })
        expect(result.terminations).toBeGreaterThan(0)
      },
    )
  }

  it('is caught when it acknowledges too early', { timeout }, async () => {
    const { lost } = await crashServer({ ...size, seconds: 2, signals: 'kill', hasBug: true })
    expect(lost.length).toBeGreaterThan(0)
  })
})

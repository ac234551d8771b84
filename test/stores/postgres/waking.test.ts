import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { PostgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

const pooler = backend('pgbouncer')

const hears = (store: PostgresStore, how: unknown): Promise<void> =>
  expect
    .poll(async () => (await store.health()).checks['wakeups'], { timeout: 15_000, interval: 20 })
    .toEqual(how)

describe.skipIf(missing)('watch of postgresStore', { timeout: 30_000 }, () => {
  let bench: PostgresBench

  beforeEach(async () => (bench = await openPostgresBench()))
  afterEach(() => bench.close())

  /** Resolves at the next wake-up. */
  const wakeUp = (store: PostgresStore): Promise<void> =>
    new Promise((done) => {
      const stop = store.watch(() => {
        stop()
        done()
      })
    })

  it('wakes another process when a letter becomes due, also after its connection was lost', async () => {
    const other = await bench.another()
    other.watch(() => {})
    await hears(other, 'listening')
    const first = wakeUp(other)
    await bench.store.add([aLetter()])
    await first
    const listeners = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' || $1 || '%'`
    const second = wakeUp(other)
    await bench.ask(listeners, [bench.schema])
    await second
    await hears(other, 'listening')
    const third = wakeUp(other)
    await bench.store.add([aLetter()])
    await expect(third).resolves.toBeUndefined()
  })

  /**
   * What the server passes on when a store of its own adds a letter and is closed, which waits for
   * its notices.
   */
  async function noticesOf(letter: DeadLetter): Promise<number> {
    const channel = `redrive_${bench.schema}`
    const ear = new Client({ connectionString: url })
    await ear.connect()
    try {
      await ear.query(`LISTEN "${channel}"`)
      let notices = 0
      const end = new Promise<void>((done) => {
        ear.on('notification', ({ payload }) => (payload === 'end' ? done() : (notices += 1)))
      })
      const store = await bench.another()
      await store.add([letter])
      await store.close()
      await bench.ask('SELECT pg_notify($1, $2)', [channel, 'end'])
      await end
      return notices
    } finally {
      await ear.end()
    }
  }

  it('does not notify for letters that are due later', async () => {
    const later = toTimestamp(Date.now() + 3_600_000)
    expect(await noticesOf(aLetter({ retryAt: later }))).toBe(0)
    expect(await noticesOf(aLetter())).toBe(1)
  })

  it.skipIf(pooler.missing)(
    'works through a pooler in transaction mode, and reports that it polls',
    async () => {
      const store = await bench.another({ url: pooler.url })
      const heard = wakeUp(store)
      await hears(store, expect.stringContaining('polling'))
      const letters = Array.from({ length: 30 }, (_, n) =>
        aLetter({ dedupeKey: `k${n}`, lane: `l${n}`, tags: ['t'] }),
      )
      await Promise.all(letters.map((letter) => store.add([letter])))
      await heard
      const claims = await Promise.all(
        Array.from({ length: 3 }, () => store.claim({ worker: 'w', limit: 10, leaseMs: 60_000 })),
      )
      const claimed = claims.flatMap((claim) => claim.letters)
      expect(claimed.length).toBe(30)
      const by = { at: toTimestamp(Date.now()), actor: 'w', guard: 'epoch' } as const
      const refs = claimed.map(({ id, epoch }) => ({ id, epoch }))
      expect(await store.renew(refs, 60_000)).toEqual(refs.map(() => true))
      const results = await Promise.all(claimed.map((letter) => store.apply([resolve(letter, by)])))
      expect(new Set(results.flat())).toEqual(new Set(['written']))
      expect(await store.tally('tag')).toEqual(new Map([['t', 30]]))
    },
  )
})

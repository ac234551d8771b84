import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { release, reschedule, resolve, type Mover } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { PostgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

const by = (): Mover => ({ at: toTimestamp(Date.now()), actor: 'w', guard: 'epoch' })
const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n))

describe.skipIf(missing)('postgresStore with concurrent processes', { timeout: 60_000 }, () => {
  let bench: PostgresBench
  let stores: PostgresStore[]

  beforeEach(async () => {
    bench = await openPostgresBench()
    stores = await Promise.all(times(4, (n) => bench.another({ poolSize: n === 0 ? 2 : 4 })))
  })
  afterEach(() => bench.close())

  it('gives a contended letter one owner at a time, and counts every run', async () => {
    const hot = aLetter()
    await bench.store.add([hot])
    const epochs: number[] = []
    let inFlight = 0
    const work = async (store: PostgresStore): Promise<void> => {
      while (epochs.length < 60) {
        const { letters } = await store.claim({ worker: 'w', limit: 3, leaseMs: 60_000 })
        for (const letter of letters) {
          expect(++inFlight).toBe(1)
          epochs.push(letter.epoch)
          inFlight -= 1
          const judged = {
            failure: letter.failure,
            category: letter.category,
            severity: letter.severity,
            recoverability: letter.recoverability,
            fingerprint: letter.fingerprint,
          }
          const again = reschedule(letter, by(), { judged, retryAt: hot.failedAt, backoffMs: 0 })
          expect(await store.apply([again])).toEqual(['written'])
        }
      }
    }
    await Promise.all(stores.flatMap((store) => [work(store), work(store), work(store)]))
    expect(epochs.toSorted((a, b) => a - b)).toEqual(epochs.map((_, n) => n + 1))
    expect((await bench.store.get([hot.id]))[0]!.retries).toBe(epochs.length)
  })

  it('never claims more than the limit, however the statement is planned', async () => {
    const settings = '-c enable_hashjoin=off -c enable_material=off -c enable_nestloop=off'
    const odd = await bench.another({ url: `${url}?options=${encodeURIComponent(settings)}` })
    await bench.store.add(
      times(60, (n) => aLetter({ queue: `q${n % 3}`, priority: n % 2 ? 'low' : 'high' })),
    )
    const claims = await Promise.all(
      times(6, (n) => odd.claim({ worker: `w${n}`, limit: 4, leaseMs: 60_000 })),
    )
    for (const { letters } of claims) expect(letters.length).toBe(4)
    expect((await bench.store.tally('state')).get('retrying')).toBe(24)
  })

  it('claims past letters that other claims have locked', async () => {
    await bench.store.add(times(80, () => aLetter()))
    const claims = await Promise.all(
      stores.flatMap((store, n) =>
        times(4, () => store.claim({ worker: `w${n}`, limit: 5, leaseMs: 60_000 })),
      ),
    )
    expect(claims.map(({ letters }) => letters.length)).toEqual(claims.map(() => 5))
  })

  it('settles each letter once when batches have the same letters in different orders', async () => {
    const chance = fakeClock()
    await bench.store.add(times(60, () => aLetter()))
    const { letters } = await bench.store.claim({ worker: 'w', limit: 60, leaseMs: 60_000 })
    const shuffled = (): DeadLetter[] =>
      letters
        .map((letter) => ({ letter, key: chance.random() }))
        .sort((a, b) => a.key - b.key)
        .map(({ letter }) => letter)
    const results = await Promise.all(
      times(16, (n) =>
        stores[n % 4]!.apply(
          shuffled()
            .slice(0, 40)
            .map((letter) => resolve(letter, by())),
        ),
      ),
    )
    const written = results.flat().filter((result) => result === 'written').length
    expect((await bench.store.tally('state')).get('resolved')).toBe(written)
    const resolved = (await bench.store.totals()).find(({ action }) => action === 'resolve')
    expect(resolved?.count).toBe(written)
  })

  it('keeps the order of lanes while processes add, run and remove letters', async () => {
    const letters = times(120, (n) => aLetter({ lane: `l${n % 4}`, queue: 'q' }))
    const adding = Promise.all(letters.map((letter, n) => stores[(n >> 2) % 4]!.add([letter])))
    const running = new Set<string>()
    let done = 0
    const work = async (store: PostgresStore, n: number): Promise<void> => {
      while (done < letters.length) {
        const { letters: claimed } = await store.claim({ worker: 'w', limit: 3, leaseMs: 60_000 })
        for (const letter of claimed) {
          expect(running.has(letter.lane!)).toBe(false)
          running.add(letter.lane!)
        }
        for (const letter of claimed) {
          running.delete(letter.lane!)
          const back = letter.retries === 1 && n % 2 === 0
          const change = back ? release(letter, by()) : resolve(letter, by())
          expect(await store.apply([change])).toEqual(['written'])
          if (!back) done += 1
        }
      }
    }
    await Promise.all(stores.map(work))
    await adding
    expect(await bench.store.tally('state')).toEqual(new Map([['resolved', letters.length]]))
  })

  it('claims only the oldest letter of a lane whose letters were added concurrently', async () => {
    for (let round = 0; round < 8; round++) {
      const lane = times(4, () => aLetter({ lane: 'l', queue: `q${round}` }))
      await Promise.all(lane.map((letter, n) => stores[n]!.add([letter])))
      const claim = { worker: 'w', limit: 10, leaseMs: 60_000, queues: [`q${round}`] }
      expect((await bench.store.claim(claim)).letters.map(({ id }) => id)).toEqual([lane[0]!.id])
    }
  })

  it('releases a letter once all its dependencies are resolved, by any process', async () => {
    const groups = times(20, () => {
      const roots = times(3, () => aLetter({ queue: 'roots' }))
      return { roots, leaf: aLetter({ queue: 'leaves', dependsOn: roots.map(({ id }) => id) }) }
    })
    await bench.store.add(groups.flatMap(({ roots }) => roots))
    const person = { ...by(), guard: 'version' } as const
    await Promise.all(
      groups.flatMap(({ roots, leaf }, n) => [
        stores[n % 4]!.add([leaf]),
        ...roots.map((root, at) => stores[(n + at) % 4]!.apply([resolve(root, person)])),
      ]),
    )
    const { letters } = await bench.store.claim({
      worker: 'w',
      limit: 100,
      leaseMs: 1000,
      queues: ['leaves'],
    })
    expect(letters.map(({ id }) => id)).toEqual(groups.map(({ leaf }) => leaf.id))
  })

  it('releases a letter when its dependencies are resolved concurrently', async () => {
    const person = { ...by(), guard: 'version' } as const
    for (let round = 0; round < 8; round++) {
      const roots = times(4, () => aLetter({ queue: 'roots' }))
      const leaf = aLetter({ queue: 'leaves', dependsOn: roots.map(({ id }) => id) })
      await bench.store.add([...roots, leaf])
      await Promise.all(roots.map((root, n) => stores[n]!.apply([resolve(root, person)])))
      const claim = { worker: 'w', limit: 1, leaseMs: 60_000, queues: ['leaves'] }
      expect((await bench.store.claim(claim)).letters.map(({ id }) => id)).toEqual([leaf.id])
    }
  })

  it('releases a letter whose resolved dependency is added concurrently', async () => {
    const pairs = times(30, () => {
      const root = aLetter({ queue: 'roots', state: 'resolved' })
      return { root, leaf: aLetter({ queue: 'leaves', dependsOn: [root.id] }) }
    })
    await Promise.all(
      pairs.flatMap(({ root, leaf }, n) => [
        stores[n % 2]!.add([leaf]),
        stores[2 + (n % 2)]!.add([root]),
      ]),
    )
    const { letters } = await bench.store.claim({ worker: 'w', limit: 100, leaseMs: 1000 })
    expect(letters.length).toBe(pairs.length)
  })

  it('keeps to a capacity that many processes share', async () => {
    const room = { maxItems: 10, overflow: 'reject' } as const
    const results = await Promise.all(times(40, (n) => stores[n % 4]!.add([aLetter()], room)))
    expect(results.flat().filter(({ kind }) => kind === 'added').length).toBe(10)
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 10]]))
  })

  it('lets workers continue while reads use all connections for reads', async () => {
    const store = await bench.another({ poolSize: 2 })
    await store.add(times(20, () => aLetter()))
    const reads = times(100, () => store.find({ text: 'failed', limit: 20 }))
    const { letters } = await store.claim({ worker: 'w', limit: 5, leaseMs: 60_000 })
    expect(letters.length).toBe(5)
    const refs = letters.map(({ id, epoch }) => ({ id, epoch }))
    expect(await store.renew(refs, 90_000)).toEqual(letters.map(() => true))
    const settled = await Promise.all(letters.map((letter) => store.apply([resolve(letter, by())])))
    expect(settled.flat()).toEqual(letters.map(() => 'written'))
    expect((await Promise.all(reads)).every(({ items }) => items.length > 0)).toBe(true)
  })

  it('merges the counters of many writers, and deletes those that are zero', async () => {
    const letters = times(12, (n) => aLetter({ fingerprint: `f${n}`, tags: [`t${n}`] }))
    await Promise.all(letters.map((letter, n) => stores[(n >> 2) % 4]!.add([letter])))
    await bench.store.remove({ queue: 'orders' })
    const rows = async (): Promise<number> =>
      Number((await bench.ask('SELECT count(*)::int FROM @counters WHERE kind <> 1'))[0]![0])
    expect(await rows()).toBeGreaterThan(0)
    // A store tidies after so many writes.
    const busy = times(210, () => aLetter({ queue: 'other' }))
    for (const letter of busy) await bench.store.add([letter])
    await expect.poll(rows).toBeLessThan(8)
    expect(await bench.store.tally('queue')).toEqual(new Map([['other', busy.length]]))
  })
})

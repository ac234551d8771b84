import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { resolve } from '../../src/letter/moves.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'
import { postgresPlace, type Place } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'
import { backends, openStore, type Environment } from './backends.ts'

const sqlite = {
  name: 'sqlite',
  lacks: undefined,
  begin: async (): Promise<Environment> => {
    const { path, clear } = await temporaryDirectory()
    return { url: `sqlite:${join(path, 'letters.db')}`, clear }
  },
}

const callers = 8
/** The same list in as many orders as there are callers, one of them backwards. */
const orders = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: callers }, (_, n) => {
    const rotated = [...list.slice(n * 3), ...list.slice(0, n * 3)]
    return n % 2 === 0 ? rotated : rotated.toReversed()
  })

describe.each([sqlite, ...Object.values(backends)])(
  'concurrent callers on $name',
  ({ lacks, begin }) => {
    describe.skipIf(lacks)('that use opposite orders', () => {
      let environment: Environment
      let stores: Store[]
      beforeAll(async () => {
        environment = await begin()
        stores = [await openStore(environment.url), await openStore(environment.url)]
      }, 60_000)
      afterAll(async () => {
        for (const store of stores ?? []) await store.close()
        await environment?.clear()
      })
      const storeOf = (caller: number): Store => stores[caller % 2]!

      it('all complete their settles, and each change is written once', async () => {
        const letters = Array.from({ length: 24 }, () => aLetter({ id: systemClock.id() }))
        await storeOf(0).add(letters)
        const by = { at: letters[0]!.updatedAt, actor: 'ada', guard: 'version' } as const
        const changes = orders(letters.map((letter) => resolve(letter, by)))
        const results = await Promise.all(changes.map((batch, n) => storeOf(n).apply(batch)))
        const written = changes.flatMap((batch, n) =>
          batch.filter((_, at) => results[n]![at] === 'written').map(({ id }) => id),
        )
        expect(written.toSorted()).toEqual(letters.map(({ id }) => id).toSorted())
        expect(new Set(results.flat())).toEqual(new Set(['written', 'conflict']))
      })

      it('all complete captures of the same keys, and each occurrence is counted', async () => {
        const keys = Array.from({ length: 24 }, () => systemClock.id())
        const queue = systemClock.id()
        const batches = orders(keys).map((list) =>
          list.map((dedupeKey) => aLetter({ id: systemClock.id(), queue, dedupeKey })),
        )
        await Promise.all(batches.map((batch, n) => storeOf(n).add(batch)))
        const { items } = await storeOf(0).find({ queue, limit: 100 })
        expect(items.map(({ dedupeKey }) => dedupeKey!).toSorted()).toEqual(keys.toSorted())
        expect(new Set(items.map(({ occurrences }) => occurrences))).toEqual(new Set([callers]))
      })
    })
  },
)

const { url: pooler, missing } = backend('pgbouncer')
describe.skipIf(missing)('postgres behind a pooler in transaction mode', () => {
  let place: Place
  let directStore: Store
  beforeAll(async () => {
    place = postgresPlace(backend('postgres').url)
    directStore = await openStore(`${backend('postgres').url}?schema=${place.name}`)
  })
  afterAll(async () => {
    await directStore?.close()
    await place?.clear()
  })

  it('finds and settles work although no notification arrives', async () => {
    const store = await openStore(`${pooler}?schema=${place.name}`)
    const dlq = await DeadLetterQueue.open(store, { pollMs: 200 })
    const done = new Promise((resolve) => dlq.on('resolved', resolve))
    const letter = aLetter({ id: systemClock.id() })
    dlq.handle(letter.queue, () => {})
    dlq.start()
    await directStore.add([letter])
    await done
    expect((await directStore.get([letter.id]))[0]!.state).toBe('resolved')
    await dlq.close()
  })

  it('serves more concurrent calls than it has connections', async () => {
    const store = await openStore(`${pooler}?schema=${place.name}&poolSize=2`)
    const letters = Array.from({ length: 100 }, () => aLetter({ id: systemClock.id() }))
    const answers = await Promise.all(
      letters.flatMap((letter) => [
        store.add([letter]).then(([result]) => result!.kind),
        store.tally('state').then(() => 'counted'),
        store.claim({ worker: 'w', limit: 1, leaseMs: 60_000 }).then(() => 'claimed'),
      ]),
    )
    expect(new Set(answers)).toEqual(new Set(['added', 'counted', 'claimed']))
    expect(await store.get(letters.map(({ id }) => id))).toHaveLength(100)
    await store.close()
  })
})

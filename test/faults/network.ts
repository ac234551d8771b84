import { describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import { systemClock } from '../../src/clock/clock.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { resolve, type Change } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'
import { atDepth } from '../depth.ts'
import { countActions, outcomeOf, retryUntilAnswered } from './outcome.ts'
import type { Mode, Proxy } from './proxy.ts'
import type { ProxiedServer } from './proxied-server.ts'

/** A letter in a queue of its own, so that concurrent tests on one server are isolated. */
const newLetter = (overrides: Partial<DeadLetter> = {}): DeadLetter =>
  aLetter({ id: systemClock.id(), queue: systemClock.id(), ...overrides })
const resolveChange = (letter: DeadLetter): Change =>
  resolve(letter, { at: toTimestamp(systemClock.now()), actor: 'w', guard: 'epoch' })
const claimRequest = ({ queue }: DeadLetter, worker: string, leaseMs = 60_000) => ({
  worker,
  limit: 1,
  leaseMs,
  queues: [queue],
})

/**
 * Ways in which the network breaks; the store must notice each, if only by a timeout. `npm test`
 * has one of each kind: a closed connection, an invalid reply and no reply.
 */
const cuts = atDepth<Mode[]>(
  ['reset', 'garbage', 'blackhole'],
  ['reset', 'refuse', 'truncate', 'garbage', 'blackhole', 'drop requests'],
)

/** Numbers of bytes after which a reply ends: none, within the first message, and after it. */
const cutsAfter = atDepth([0, 17, 200], [0, 1, 5, 17, 64, 200])

/** What a store guarantees on a network that breaks. */
export function testNetwork(name: string, server: ProxiedServer): void {
  describe(`a network to ${name}`, { concurrent: true }, () => {
    /** An open store behind a proxy. */
    const withStore = (work: (store: Store, proxy: Proxy) => Promise<void>): Promise<void> =>
      server.behind(async (store, proxy) => {
        await store.open()
        await work(store, proxy)
      })

    async function expectStoredOnce(letter: DeadLetter): Promise<void> {
      expect(await server.direct.get([letter.id])).toEqual([letter])
      const { queue } = letter
      expect(await server.direct.tally('queue', { queue })).toEqual(new Map([[queue, 1]]))
      expect(await countActions(server.direct, 'capture', queue)).toBe(1)
    }

    it('that is down at first fails the open, and the store opens once it is up', () =>
      server.behind(async (store, proxy) => {
        await proxy.set('refuse')
        await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect((await store.health()).ok).toBe(false)
        await proxy.set('pass')
        await store.open()
        expect(await store.add([newLetter()])).toEqual([{ kind: 'added' }])
      }))

    it.each(cuts)(
      'that breaks (%s) fails a capture; repeating it stores the letter once, without a restart',
      (mode) =>
        withStore(async (store, proxy) => {
          const letter = newLetter({ dedupeKey: 'key' })
          if (mode === 'refuse') await proxy.set('reset')
          await proxy.set(mode)
          const { error } = await outcomeOf(store.add([letter]))
          expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
          await proxy.set('pass')
          const { value } = await retryUntilAnswered(() => store.add([letter]))
          expect(value[0]!.kind).toMatch(/added|duplicate/)
          await expectStoredOnce(letter)
        }),
    )

    it('that loses replies leaves a capture unknown: repeating it stores and counts it once', () =>
      withStore(async (store, proxy) => {
        const letter = newLetter({ dedupeKey: 'key' })
        await proxy.set('drop replies')
        const { error } = await outcomeOf(store.add([letter]))
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        await proxy.set('pass')
        await retryUntilAnswered(() => store.add([letter]))
        await expectStoredOnce(letter)
      }))

    it('that loses replies leaves a result unknown: repeating it writes it once', () =>
      withStore(async (store, proxy) => {
        const letter = newLetter()
        await store.add([letter])
        const [held] = (await store.claim(claimRequest(letter, 'w'))).letters
        const change = resolveChange(held!)
        await proxy.set('drop replies')
        const { error } = await outcomeOf(store.apply([change]))
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        await proxy.set('pass')
        const { value } = await retryUntilAnswered(() => store.apply([change]))
        expect(value[0]).toMatch(/written|conflict/)
        const [kept] = await server.direct.get([letter.id])
        expect(kept!.state).toBe('resolved')
        expect(kept!.history.filter(({ action }) => action === 'resolve')).toHaveLength(1)
        expect(await countActions(server.direct, 'resolve', letter.queue)).toBe(1)
      }))

    it('that loses the reply to a claim costs at most one lease; the next claim works, and each is counted', () =>
      withStore(async (store, proxy) => {
        const letter = newLetter()
        await store.add([letter])
        await proxy.set('drop replies')
        const lost = outcomeOf(store.claim(claimRequest(letter, 'deaf', 1000)))
        await proxy.seen('reply dropped')
        let got: DeadLetter | undefined
        const claim = async (): Promise<boolean> => {
          ;[got] = (await server.direct.claim(claimRequest(letter, 'w'))).letters
          return got !== undefined
        }
        await until('the letter could not be claimed', claim, 20)
        expect((await lost).error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect(got).toMatchObject({ id: letter.id, retries: got!.epoch })
        expect(await server.direct.apply([resolveChange(got!)])).toEqual(['written'])
      }))

    it.each(cutsAfter)(
      'that ends a reply after %i bytes loses nothing and duplicates nothing',
      (bytes) =>
        withStore(async (store, proxy) => {
          const letter = newLetter()
          await store.get([letter.id])
          proxy.cutAfter(bytes)
          await retryUntilAnswered(() => store.add([letter]))
          await retryUntilAnswered(() => store.get([letter.id]))
          await proxy.seen('cut')
          await expectStoredOnce(letter)
        }),
    )
  })
}

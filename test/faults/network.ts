import { describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import { systemClock } from '../../src/clock/clock.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { resolve, type Change } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { FaultBackend } from './backends.ts'
import { happened, outcomeOf, persist } from './outcome.ts'
import type { Mode, Proxy } from './proxy.ts'
import { witnessed } from './witnessed.ts'

/** A letter of a queue of its own, so that tests on one server do not see each other. */
const fresh = (overrides: Partial<DeadLetter> = {}): DeadLetter =>
  aLetter({ id: systemClock.id(), queue: systemClock.id(), ...overrides })
const settled = (letter: DeadLetter): Change =>
  resolve(letter, { at: toTimestamp(systemClock.now()), actor: 'w', guard: 'epoch' })
const claimOf = ({ queue }: DeadLetter, worker: string, leaseMs = 60_000) => ({
  worker,
  limit: 1,
  leaseMs,
  queues: [queue],
})

/** How the network breaks; each is to be noticed, also where it takes a while. */
const cuts: Mode[] = ['reset', 'refuse', 'truncate', 'garbage', 'blackhole', 'drop requests']

/** What holds on a network that breaks in the ways that networks do. */
export function testNetwork(backend: FaultBackend): void {
  const { name, lacks } = backend
  describe.skipIf(lacks)(`a network between us and ${name}`, { concurrent: true }, () => {
    const server = witnessed(backend)

    /** A store behind a proxy, opened. */
    const within = (work: (store: Store, proxy: Proxy) => Promise<void>): Promise<void> =>
      server.behind(async (store, proxy) => {
        await store.open()
        await work(store, proxy)
      })

    async function expectKeptOnce(letter: DeadLetter): Promise<void> {
      expect(await server.witness.get([letter.id])).toEqual([letter])
      const { queue } = letter
      expect(await server.witness.tally('queue', { queue })).toEqual(new Map([[queue, 1]]))
      expect(await happened(server.witness, 'capture', queue)).toBe(1)
    }

    it('that leads nowhere at first is told at open, and the store opens once it leads somewhere', () =>
      server.behind(async (store, proxy) => {
        await proxy.set('refuse')
        await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect((await store.health()).ok).toBe(false)
        await proxy.set('pass')
        await store.open()
        expect(await store.add([fresh()])).toEqual([{ kind: 'added' }])
      }))

    it.each(cuts)(
      'that breaks (%s) refuses a capture; the same again keeps it once, without a new start',
      (mode) =>
        within(async (store, proxy) => {
          const letter = fresh({ dedupeKey: 'key' })
          if (mode === 'refuse') await proxy.set('reset')
          await proxy.set(mode)
          const { error } = await outcomeOf(store.add([letter]))
          expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
          await proxy.set('pass')
          const { value } = await persist(() => store.add([letter]))
          expect(value[0]!.kind).toMatch(/added|duplicate/)
          await expectKeptOnce(letter)
        }),
    )

    it('that loses the replies leaves a capture in doubt: repeated, it is kept and counted once', () =>
      within(async (store, proxy) => {
        const letter = fresh({ dedupeKey: 'key' })
        await proxy.set('drop replies')
        const { error } = await outcomeOf(store.add([letter]))
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        await proxy.set('pass')
        await persist(() => store.add([letter]))
        await expectKeptOnce(letter)
      }))

    it('that loses the replies leaves a result in doubt: repeated, it is written once and not lost', () =>
      within(async (store, proxy) => {
        const letter = fresh()
        await store.add([letter])
        const [held] = (await store.claim(claimOf(letter, 'w'))).letters
        const change = settled(held!)
        await proxy.set('drop replies')
        const { error } = await outcomeOf(store.apply([change]))
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        await proxy.set('pass')
        const { value } = await persist(() => store.apply([change]))
        expect(value[0]).toMatch(/written|conflict/)
        const [kept] = await server.witness.get([letter.id])
        expect(kept!.state).toBe('resolved')
        expect(kept!.history.filter(({ action }) => action === 'resolve')).toHaveLength(1)
        expect(await happened(server.witness, 'resolve', letter.queue)).toBe(1)
      }))

    it('that loses the replies to a claim costs one lease at most: then another claims it, and each claim is counted', () =>
      within(async (store, proxy) => {
        const letter = fresh()
        await store.add([letter])
        await proxy.set('drop replies')
        const lost = outcomeOf(store.claim(claimOf(letter, 'deaf', 1000)))
        await proxy.seen('reply dropped')
        let got: DeadLetter | undefined
        const claim = async (): Promise<boolean> => {
          ;[got] = (await server.witness.claim(claimOf(letter, 'w'))).letters
          return got !== undefined
        }
        await until('the letter could not be claimed', claim, 20)
        expect((await lost).error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect(got).toMatchObject({ id: letter.id, retries: got!.epoch })
        expect(await server.witness.apply([settled(got!)])).toEqual(['written'])
      }))

    it.each([0, 1, 5, 17, 64, 200])(
      'that ends a reply after %i bytes loses nothing and doubles nothing',
      (bytes) =>
        within(async (store, proxy) => {
          const letter = fresh()
          await store.get([letter.id])
          proxy.cutAfter(bytes)
          await persist(() => store.add([letter]))
          await persist(() => store.get([letter.id]))
          await proxy.seen('cut')
          await expectKeptOnce(letter)
        }),
    )
  })
}

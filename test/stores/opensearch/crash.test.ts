import assert from 'node:assert/strict'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { park, resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { Store } from '../../../src/store.ts'
import { openSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { FaultyProxy } from './faulty-proxy.ts'
import { pausing } from '../bench.ts'
import { Indices } from './opensearch-bench.ts'

const server = backend('opensearch')

/**
 * A process that dies before a write: from that write on, the proxy cuts off all requests. Each
 * test is repeated for every write of its step, until the step completes.
 */
describe.skipIf(server.missing)(
  'openSearchStore after a process died before any write of a step',
  () => {
    const indices = new Indices(server.url)
    const proxy = new FaultyProxy(server.url)
    const clock = fakeClock()
    let url = ''
    /** Has no delays, since the server never becomes reachable again. */
    const clockWithoutDelays: Clock = {
      ...pausing(clock),
      timer: (_ms, fire) => systemClock.timer(0, fire),
    }
    const deadStores: Store[] = []
    let survivor: Store

    beforeAll(async () => {
      url = await proxy.open()
      survivor = openSearchStore({ url: server.url, prefix: indices.prefix, clock: pausing(clock) })
      await survivor.open()
    })
    afterAll(async () => {
      proxy.actionFor = () => 'pass'
      await Promise.all([survivor, ...deadStores].map((store) => store.close()))
      await proxy.close()
      await indices.remove()
    })

    /**
     * Runs the step with a store that dies before the write of this number, from 1. Returns true if
     * the step completed because it has fewer writes.
     */
    async function runAndDie(
      write: number,
      step: (store: Store) => Promise<unknown>,
    ): Promise<boolean> {
      proxy.actionFor = () => 'pass'
      const first = openSearchStore({ url, prefix: indices.prefix, clock: clockWithoutDelays })
      deadStores.push(first)
      await first.open()
      let writes = 0
      proxy.actionFor = (_, path) => {
        if (path.includes('/_bulk')) writes += 1
        return writes < write ? 'pass' : 'cut'
      }
      await step(first).catch(() => {})
      return writes < write
    }

    async function dieBeforeEveryWrite(
      prepare: () => Promise<{
        step: (store: Store) => Promise<unknown>
        check: () => Promise<void>
      }>,
    ): Promise<void> {
      for (let write = 1, completed = false; !completed; write++) {
        await indices.clear()
        const { step, check } = await prepare()
        completed = await runAndDie(write, step)
        // Long enough for leases to expire, and for unfinished work to be repaired.
        await clock.advance(120_000)
        await check()
        assert.ok(write < 20, 'the step completes')
      }
    }

    const claimLetters = async (): Promise<DeadLetter[]> => {
      const { letters } = await survivor.claim({ worker: 'w2', limit: 10, leaseMs: 1000 })
      return letters
    }
    const byPerson = () =>
      ({ at: toTimestamp(clock.now()), actor: 'ada', guard: 'version' }) as const

    it('stores one letter per dedupeKey', async () => {
      await dieBeforeEveryWrite(async () => {
        const letter = aLetter({ dedupeKey: 'k' })
        return {
          step: (store) => store.add([letter]),
          check: async () => {
            await claimLetters()
            const [again] = await survivor.add([letter])
            assert.ok(
              again!.kind === 'added' || (again!.kind === 'duplicate' && again!.by === 'id'),
            )
            const [other] = await survivor.add([aLetter({ dedupeKey: 'k' })])
            assert.ok(other!.kind === 'duplicate' && other!.of === letter.id)
            assert.equal((await survivor.find({})).items.length, 1)
          },
        }
      })
    })

    it('frees the dependents of a resolved letter', async () => {
      await dieBeforeEveryWrite(async () => {
        const first = aLetter()
        const waiting = aLetter({ dependsOn: [first.id] })
        await survivor.add([first, waiting])
        return {
          step: (store) => store.apply([resolve(first, byPerson())]),
          check: async () => {
            const [current] = await survivor.get([first.id])
            if (current!.state === 'pending') await survivor.apply([resolve(current!, byPerson())])
            assert.deepEqual(
              (await claimLetters()).map(({ id }) => id),
              [waiting.id],
            )
          },
        }
      })
    })

    it('leaves no lane blocked, and loses no letter of the lane', async () => {
      await dieBeforeEveryWrite(async () => {
        const letters = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
        await survivor.add(letters)
        return {
          step: (store) => store.claim({ worker: 'w1', limit: 10, leaseMs: 1000 }),
          check: async () => {
            for (const { id } of letters) {
              const [head, ...others] = await claimLetters()
              assert.equal(head!.id, id)
              assert.deepEqual(others, [])
              await survivor.apply([resolve(head!, byPerson())])
            }
          },
        }
      })
    })

    it('gives the lane to the next letter after its letter is parked', async () => {
      await dieBeforeEveryWrite(async () => {
        const letters = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
        await survivor.add(letters)
        return {
          step: (store) => store.claim({ worker: 'w1', limit: 10, leaseMs: 1000 }),
          check: async () => {
            const [first] = await survivor.get([letters[0]!.id])
            await survivor.apply([park(first!, byPerson(), { reason: 'operator' })])
            assert.deepEqual(
              (await claimLetters()).map(({ id }) => id),
              [letters[1]!.id],
            )
          },
        }
      })
    })

    it('rejects a delayed claim after another process took over its lane', async () => {
      await indices.clear()
      const [older, younger] = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
      await survivor.add([younger])
      proxy.actionFor = () => 'pass'
      const slow = openSearchStore({ url, prefix: indices.prefix, clock: pausing(clock) })
      deadStores.push(slow)
      await slow.open()
      const delayed = Promise.withResolvers<void>()
      const proxyAction = Promise.withResolvers<'pass'>()
      proxy.actionFor = (_, path) => {
        if (!path.includes('-letters-writes/_bulk')) return 'pass'
        delayed.resolve()
        return proxyAction.promise
      }
      const claim = slow.claim({ worker: 'w1', limit: 10, leaseMs: 60_000 })
      await delayed.promise
      await survivor.add([older])
      const { letters } = await survivor.claim({ worker: 'w2', limit: 10, leaseMs: 60_000 })
      assert.deepEqual(
        letters.map(({ id }) => id),
        [older.id],
      )
      proxyAction.resolve('pass')
      assert.deepEqual((await claim).letters, [])
      assert.equal((await survivor.get([younger.id]))[0]!.state, 'pending')
    })
  },
)

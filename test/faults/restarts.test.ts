import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { resolve } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { PrivateServer } from '../servers/control.ts'
import { backends, opened, type Ground } from './backends.ts'
import { counted, happened, persist } from './outcome.ts'

const restarts: Record<string, (server: PrivateServer) => Promise<void>> = {
  'stopped in order': (server) => server.stop('fast'),
  'stopped at once': (server) => server.stop('immediate'),
  killed: (server) => server.kill9(),
  'killed again': (server) => server.kill9(),
}

/** So many captures are acknowledged between two restarts. */
const between = 40

describe.each([backends.postgres, backends.redis])('$name', ({ lacks, begin }) => {
  describe.skipIf(lacks)('that restarts under load', () => {
    let ground: Ground
    let store: Store
    beforeAll(async () => {
      ground = await begin()
      store = await opened(ground.url)
    }, 60_000)
    afterAll(async () => {
      await store?.close()
      await ground?.clear()
    })

    it('keeps all that was acknowledged, once; results are written once, and everything comes to its end', async () => {
      const acked: string[] = []
      const resolved: string[] = []
      let refused = 0
      const ending = { isNear: false }
      let waiting: { count: number; go: () => void } | undefined
      const reached = (count: number): Promise<void> =>
        new Promise((go) => {
          waiting = { count, go }
        })

      const capture = async (): Promise<void> => {
        while (!ending.isNear) {
          const letter = aLetter({ id: systemClock.id() })
          refused += (await persist(() => store.add([letter]))).refused
          acked.push(letter.id)
          if (waiting && acked.length >= waiting.count) waiting.go()
        }
      }
      /** Leases are short, so that what a cut took away is claimed again before long. */
      const work = async (worker: string): Promise<void> => {
        for (;;) {
          const ended = ending.isNear
          const { value } = await persist(() => store.claim({ worker, limit: 5, leaseMs: 1500 }))
          for (const letter of value.letters) {
            const by = {
              at: toTimestamp(systemClock.now()),
              actor: worker,
              guard: 'epoch',
            } as const
            const [result] = (await persist(() => store.apply([resolve(letter, by)]))).value
            if (result === 'written') resolved.push(letter.id)
          }
          const { pending = 0, retrying = 0 } = Object.fromEntries(
            (await persist(() => store.tally('state'))).value,
          ) as Record<string, number>
          if (ended && pending + retrying === 0) return
        }
      }

      // Many, so that some are on their way at the moment of each end.
      const captures = Array.from({ length: 8 }, capture)
      const load = [...captures, work('w1'), work('w2')]
      const restart = async (): Promise<void> => {
        for (const stop of Object.values(restarts)) {
          await reached(acked.length + between)
          await stop(ground.server!)
          await ground.server!.start()
        }
        await reached(acked.length + between)
        ending.isNear = true
      }
      await Promise.all([restart(), ...load])

      expect(refused).toBeGreaterThan(0)
      expect(acked.length).toBeGreaterThanOrEqual(between * 5)
      const kept = await store.get(acked)
      expect(kept.map(({ id, state }) => [id, state])).toEqual(acked.map((id) => [id, 'resolved']))
      expect(await counted(store)).toBe(acked.length)
      expect(await happened(store, 'capture')).toBe(acked.length)
      expect(new Set(resolved).size).toBe(resolved.length)
      expect(await happened(store, 'resolve')).toBe(acked.length)
    }, 120_000)
  })
})

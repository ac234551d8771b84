import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { resolve } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { PrivateServer } from '../servers/control.ts'
import { backends, openStore, type Environment } from './backends.ts'
import { countLetters, countActions, retryUntilAnswered } from './outcome.ts'

const restarts: Record<string, (server: PrivateServer) => Promise<void>> = {
  'stopped gracefully': (server) => server.stop('fast'),
  'stopped immediately': (server) => server.stop('immediate'),
  killed: (server) => server.kill9(),
  'killed again': (server) => server.kill9(),
}

/** Captures that are acknowledged between two restarts. */
const capturesBetween = 40

describe.each([backends.postgres, backends.redis])('$name', ({ lacks, begin }) => {
  describe.skipIf(lacks)('that restarts under load', () => {
    let environment: Environment
    let store: Store
    beforeAll(async () => {
      environment = await begin()
      store = await openStore(environment.url)
    }, 60_000)
    afterAll(async () => {
      await store?.close()
      await environment?.clear()
    })

    it('keeps every acknowledged capture once, writes every result once, and completes all letters', async () => {
      const acked: string[] = []
      const resolved: string[] = []
      let refused = 0
      const progress = { isEnding: false }
      let waiting: { count: number; go: () => void } | undefined
      const reached = (count: number): Promise<void> =>
        new Promise((go) => {
          waiting = { count, go }
        })

      const capture = async (): Promise<void> => {
        while (!progress.isEnding) {
          const letter = aLetter({ id: systemClock.id() })
          refused += (await retryUntilAnswered(() => store.add([letter]))).refused
          acked.push(letter.id)
          if (waiting && acked.length >= waiting.count) waiting.go()
        }
      }
      /** Leases are short, so that claims lost in a restart are soon claimed again. */
      const work = async (worker: string): Promise<void> => {
        for (;;) {
          const ended = progress.isEnding
          const { value } = await retryUntilAnswered(() =>
            store.claim({ worker, limit: 5, leaseMs: 1500 }),
          )
          for (const letter of value.letters) {
            const by = {
              at: toTimestamp(systemClock.now()),
              actor: worker,
              guard: 'epoch',
            } as const
            const [result] = (await retryUntilAnswered(() => store.apply([resolve(letter, by)])))
              .value
            if (result === 'written') resolved.push(letter.id)
          }
          const { pending = 0, retrying = 0 } = Object.fromEntries(
            (await retryUntilAnswered(() => store.tally('state'))).value,
          ) as Record<string, number>
          if (ended && pending + retrying === 0) return
        }
      }

      // Many, so that some are in flight at each stop.
      const captures = Array.from({ length: 8 }, capture)
      const load = [...captures, work('w1'), work('w2')]
      const restart = async (): Promise<void> => {
        for (const stop of Object.values(restarts)) {
          await reached(acked.length + capturesBetween)
          await stop(environment.server!)
          await environment.server!.start()
        }
        await reached(acked.length + capturesBetween)
        progress.isEnding = true
      }
      await Promise.all([restart(), ...load])

      expect(refused).toBeGreaterThan(0)
      expect(acked.length).toBeGreaterThanOrEqual(capturesBetween * 5)
      const kept = await store.get(acked)
      expect(kept.map(({ id, state }) => [id, state])).toEqual(acked.map((id) => [id, 'resolved']))
      expect(await countLetters(store)).toBe(acked.length)
      expect(await countActions(store, 'capture')).toBe(acked.length)
      expect(new Set(resolved).size).toBe(resolved.length)
      expect(await countActions(store, 'resolve')).toBe(acked.length)
    }, 120_000)
  })
})

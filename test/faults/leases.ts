import { describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import { systemClock } from '../../src/clock/clock.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { EventOf, EventType } from '../../src/observer.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Run } from '../../src/redelivery/run.ts'
import { aLetter } from '../../src/testing/index.ts'
import { countActions } from './outcome.ts'
import type { Proxy } from './proxy.ts'
import type { ProxiedServer } from './proxied-server.ts'

/** A worker that runs a letter. */
interface Running {
  proxy: Proxy
  letter: DeadLetter
  run: Run
  /** Lets the handler succeed. */
  end: () => void
  /** The next event of a type. */
  nextEvent: <T extends EventType>(type: T) => Promise<EventOf<T>>
}

/** Leases of a worker with a slow or broken connection to the store. */
export function testLeases(name: string, server: ProxiedServer): void {
  // OpenSearch on a busy machine takes seconds for a renewal.
  const leaseMs = name === 'opensearch' ? 12_000 : 6000
  describe(`a worker with a bad connection to ${name}`, { concurrent: true }, () => {
    const withWorker = (
      { leaseMs, delayMs = 0 }: { leaseMs: number; delayMs?: number },
      work: (worker: Running) => Promise<void>,
    ): Promise<void> =>
      server.behind(async (store, proxy) => {
        proxy.delay(delayMs, delayMs)
        const dlq = await DeadLetterQueue.open(store, { leaseMs, worker: 'far' })
        try {
          const letter = aLetter({ id: systemClock.id(), queue: systemClock.id() })
          await server.direct.add([letter])
          const started = Promise.withResolvers<Run>()
          const ending = Promise.withResolvers<void>()
          dlq.handle(letter.queue, async (run) => {
            started.resolve(run)
            await ending.promise
          })
          dlq.start()
          const nextEvent = <T extends EventType>(type: T): Promise<EventOf<T>> =>
            new Promise((resolve) => dlq.on(type, resolve))
          const run = await started.promise
          await work({ proxy, letter, run, end: () => ending.resolve(), nextEvent })
        } finally {
          await proxy.set('reset')
          await dlq.close()
        }
      })

    it('stops its handler when disconnected for longer than its lease, and its late result is refused', () =>
      withWorker({ leaseMs: 1500 }, async ({ proxy, letter, run, end, nextEvent }) => {
        const aborted = new Promise((resolve) => run.signal.addEventListener('abort', resolve))
        await proxy.set('blackhole')
        await aborted
        const request = { worker: 'near', limit: 1, leaseMs: 60_000, queues: [letter.queue] }
        const taken = async (): Promise<boolean> =>
          (await server.direct.claim(request)).letters.length === 1
        await until('the lease did not expire', taken, 15)
        const lost = nextEvent('lease-lost')
        await proxy.set('pass')
        end()
        expect((await lost).letter.id).toBe(letter.id)
        const [now] = await server.direct.get([letter.id])
        expect(now).toMatchObject({ state: 'retrying', lease: { worker: 'near' } })
        expect(await countActions(server.direct, 'resolve', letter.queue)).toBe(0)
      }))

    it('keeps its lease although every response is slow', () =>
      withWorker({ leaseMs, delayMs: 100 }, async ({ letter, end, nextEvent }) => {
        const ends = new Set<string>()
        const renewed = async (): Promise<boolean> => {
          const [now] = await server.direct.get([letter.id])
          expect(now!.lease).toMatchObject({ worker: 'far', epoch: 1 })
          return ends.add(now!.lease!.expiresAt).size > 3
        }
        // Renewals are a third of a lease apart: after three, the first lease would have expired.
        await until('the lease was not renewed three times', renewed, 40)
        const done = nextEvent('resolved')
        end()
        expect((await done).letter).toMatchObject({ id: letter.id, retries: 1 })
        expect((await server.direct.get([letter.id]))[0]!.state).toBe('resolved')
      }))
  })
}

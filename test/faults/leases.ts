import { describe, expect, it } from 'vitest'
import { until } from '../../scripts/servers/machine.ts'
import { systemClock } from '../../src/clock/clock.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { EventOf, EventType } from '../../src/observer.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import type { Run } from '../../src/redelivery/run.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { FaultBackend } from './backends.ts'
import { happened } from './outcome.ts'
import type { Proxy } from './proxy.ts'
import { witnessed } from './witnessed.ts'

/** A worker that has begun to run a letter. */
interface Running {
  proxy: Proxy
  letter: DeadLetter
  run: Run
  /** Lets the handler end well. */
  end: () => void
  /** The next event of a type. */
  heard: <T extends EventType>(type: T) => Promise<EventOf<T>>
}

/** What becomes of a lease when the worker that holds it can hardly reach the store, or not at all. */
export function testLeases(backend: FaultBackend): void {
  const { name, lacks } = backend
  describe.skipIf(lacks)(`a worker far from ${name}`, { concurrent: true }, () => {
    const server = witnessed(backend)

    const running = (
      { leaseMs, delayMs = 0 }: { leaseMs: number; delayMs?: number },
      work: (running: Running) => Promise<void>,
    ): Promise<void> =>
      server.behind(async (store, proxy) => {
        proxy.delay(delayMs, delayMs)
        const dlq = await DeadLetterQueue.open(store, { leaseMs, worker: 'far' })
        try {
          const letter = aLetter({ id: systemClock.id(), queue: systemClock.id() })
          await server.witness.add([letter])
          const started = Promise.withResolvers<Run>()
          const ending = Promise.withResolvers<void>()
          dlq.handle(letter.queue, async (run) => {
            started.resolve(run)
            await ending.promise
          })
          dlq.start()
          const heard = <T extends EventType>(type: T): Promise<EventOf<T>> =>
            new Promise((resolve) => dlq.on(type, resolve))
          const run = await started.promise
          await work({ proxy, letter, run, end: () => ending.resolve(), heard })
        } finally {
          await proxy.set('reset')
          await dlq.close()
        }
      })

    it('that is cut off for longer than its lease stops its handler, and its late result is refused', () =>
      running({ leaseMs: 1500 }, async ({ proxy, letter, run, end, heard }) => {
        const aborted = new Promise((resolve) => run.signal.addEventListener('abort', resolve))
        await proxy.set('blackhole')
        await aborted
        const request = { worker: 'near', limit: 1, leaseMs: 60_000, queues: [letter.queue] }
        const taken = async (): Promise<boolean> =>
          (await server.witness.claim(request)).letters.length === 1
        await until('the lease did not lapse', taken, 15)
        const lost = heard('lease-lost')
        await proxy.set('pass')
        end()
        expect((await lost).letter.id).toBe(letter.id)
        const [now] = await server.witness.get([letter.id])
        expect(now).toMatchObject({ state: 'retrying', lease: { worker: 'near' } })
        expect(await happened(server.witness, 'resolve', letter.queue)).toBe(0)
      }))

    it('that waits long for every answer keeps its lease all the same', () =>
      running({ leaseMs: 6000, delayMs: 100 }, async ({ letter, end, heard }) => {
        const ends = new Set<string>()
        const renewed = async (): Promise<boolean> => {
          const [now] = await server.witness.get([letter.id])
          expect(now!.lease).toMatchObject({ worker: 'far', epoch: 1 })
          return ends.add(now!.lease!.expiresAt).size > 3
        }
        // A third of a lease apart: by then its first end has passed.
        await until('the lease was not renewed three times', renewed, 25)
        const done = heard('resolved')
        end()
        expect((await done).letter).toMatchObject({ id: letter.id, retries: 1 })
        expect((await server.witness.get([letter.id]))[0]!.state).toBe('resolved')
      }))
  })
}

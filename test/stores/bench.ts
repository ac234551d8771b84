import { sleep, systemClock, type Clock } from '../../src/clock/clock.ts'
import type { Store } from '../../src/store.ts'
import type { FakeClock } from '../../src/testing/index.ts'
import type { ClosableBench } from '../contract/run-store-contract.ts'

/** Who moves the time of a bench: the test, by a fake clock, or time itself. */
type Time = Pick<FakeClock, 'now' | 'advance'>

const realTime: Time = {
  now: () => systemClock.now(),
  advance: (ms) => sleep(systemClock, ms),
}

/** The time of the test, but real pauses: the server may be busy with other tests. */
export function pausing(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    mono: () => clock.mono(),
    random: () => clock.random(),
    id: () => clock.id(),
    timer: (ms, fire) => systemClock.timer(ms, fire),
  }
}

/** A bench of one kind of store. */
export interface BenchOf<S extends Store, O> extends ClosableBench {
  readonly store: S
  another(options?: O): Promise<S>
  reopen(): Promise<S>
}

/**
 * A store in its place, with all others that a test opens there; `leave` is what becomes of the
 * place when all are closed.
 */
export async function openBench<S extends Store, O = never>(
  make: (options?: O) => S,
  time: Time = realTime,
  leave: () => Promise<void> = async () => {},
): Promise<BenchOf<S, O>> {
  const opened: S[] = []
  const another = async (options?: O): Promise<S> => {
    const store = make(options)
    opened.push(store)
    await store.open()
    return store
  }
  return {
    store: await another(),
    now: () => time.now(),
    advance: (ms) => time.advance(ms),
    another,
    reopen: async () => {
      await opened.at(-1)?.close()
      return another()
    },
    close: async () => {
      await Promise.all(opened.map((one) => one.close()))
      await leave()
    },
  }
}

import { sleep, systemClock, type Clock } from '../../src/clock/clock.ts'
import type { Store } from '../../src/store.ts'
import type { FakeClock } from '../../src/testing/index.ts'
import type { ClosableBench } from '../contract/run-store-contract.ts'

/** The time of a bench: a fake clock that the test advances, or real time. */
type Time = Pick<FakeClock, 'now' | 'advance'>

const realTime: Time = {
  now: () => systemClock.now(),
  advance: (ms) => sleep(systemClock, ms),
}

/** The fake clock of a test with real timers: the server may be busy with other tests. */
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
 * Opens a store, and further ones in the same place on request. `cleanUp` runs after all of them
 * are closed.
 */
export async function openBench<S extends Store, O = never>(
  make: (options?: O) => S,
  time: Time = realTime,
  cleanUp: () => Promise<void> = async () => {},
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
      await cleanUp()
    },
  }
}

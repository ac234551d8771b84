import { Capturer } from '../../src/capture/capture.ts'
import type { Clock } from '../../src/clock/clock.ts'
import { ObserverHub } from '../../src/observer.ts'
import type { Store } from '../../src/store.ts'

/** A capturer for a store, with default options. */
export function aCapturer(store: Store, clock: Clock, maxPayloadBytes = 1024 ** 2): Capturer {
  return new Capturer({
    store,
    clock,
    hub: new ObserverHub(),
    rulesFor: () => ({ priority: 'medium', maxRetries: 5 }),
    classifierRules: [],
    backoffs: {},
    capacity: undefined,
    maxPayloadBytes,
  })
}

import { Door } from '../../src/capture/capture.ts'
import type { Clock } from '../../src/clock/clock.ts'
import { ObserverHub } from '../../src/observer.ts'
import type { Store } from '../../src/store.ts'

/** A door before a store, with nothing said. */
export function aDoor(store: Store, clock: Clock, maxPayloadBytes = 1024 ** 2): Door {
  return new Door({
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

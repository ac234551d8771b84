import { Capturer } from '../../../src/capture/capture.ts'
import { ResilientExecutor } from '../../../src/capture/executor/executor.ts'
import type { ExecutorOptions } from '../../../src/capture/executor/resilience.ts'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import {
  ObserverHub,
  type EventOf,
  type EventType,
  type RedriveEvent,
} from '../../../src/observer.ts'
import type { Rule } from '../../../src/policy/classify.ts'
import type { Store } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'

export interface ExecutorBench {
  executor: ResilientExecutor
  store: Store
  eventsOf: <T extends EventType>(type: T) => EventOf<T>[]
  /** All letters, the oldest first. */
  letters: () => Promise<DeadLetter[]>
}

interface Settings {
  clock?: Clock
  store?: Store
  rules?: readonly Rule[]
  maxItems?: number
}

/** An executor with its own capturer and a new memory store. */
export async function anExecutor(
  policies: ExecutorOptions['policies'] = {},
  settings: Settings = {},
): Promise<ExecutorBench> {
  const { clock = systemClock, rules = [], maxItems } = settings
  const store = settings.store ?? memoryStore({ clock })
  await store.open()
  const hub = new ObserverHub()
  const events: RedriveEvent[] = []
  hub.on('*', (event) => events.push(event))
  const capturer = new Capturer({
    store,
    clock,
    hub,
    rulesFor: () => ({ priority: 'medium', maxRetries: 3 }),
    classifierRules: rules,
    backoffs: {},
    capacity: maxItems === undefined ? undefined : { maxItems, overflow: 'reject' },
    maxPayloadBytes: 1000,
  })
  return {
    executor: new ResilientExecutor({ policies }, { capturer, hub, clock, rules }),
    store,
    eventsOf: <T extends EventType>(type: T) =>
      events.filter((event): event is EventOf<T> => event.type === type),
    letters: async () => (await store.find({ order: 'oldest', payload: true })).items,
  }
}

/** The error of a call that must fail. */
export async function errorOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('the call did not fail')
}

/** An operation that throws these errors in turn, and then succeeds. */
export function failing(...errors: unknown[]): (() => Promise<string>) & { runs: number } {
  const operation = async (): Promise<string> => {
    const at = operation.runs++
    if (at < errors.length) throw errors[at]
    return 'done'
  }
  operation.runs = 0
  return operation
}

export const http = (status: number, more: object = {}): Error =>
  Object.assign(new Error(`HTTP ${status}`), { status, ...more })

/** Delays of at most 1 ms. */
export const noDelay = { initialDelayMs: 0, maxDelayMs: 1 }

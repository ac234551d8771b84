import type { Powers, Store } from '../../store.ts'

/**
 * The environment of a check: an open, empty store and control over its time. The creator of the
 * bench closes the store and clears its data afterwards.
 */
export interface StoreBench {
  readonly store: Store
  /** The store's time in milliseconds. */
  now(): number
  /**
   * Lets time pass for the store. Where time is the server's, this waits; no check asks for more
   * than 200 ms at once.
   */
  advance(ms: number): Promise<void>
  /**
   * One more handle on the same data, as another process has one. Required when the store is
   * shared.
   */
  another?(): Promise<Store>
  /** Closes the store and reopens its data. Required when the store is durable. */
  reopen?(): Promise<Store>
}

/** One guarantee of the store contract, and a function that throws if the store breaks it. */
export interface StoreCheck {
  topic: string
  title: string
  /** Why the check does not apply to a store with these powers. Undefined: it does. */
  needs?: (powers: Powers) => string | undefined
  run: (bench: StoreBench) => Promise<void>
}

/** Names the topic once for all checks of a file. */
export function checkOn(
  topic: string,
): (title: string, run: StoreCheck['run'], needs?: NonNullable<StoreCheck['needs']>) => StoreCheck {
  return (title, run, needs) => ({ topic, title, run, ...(needs ? { needs } : {}) })
}

export const needsShared = (powers: Powers): string | undefined =>
  powers.shared ? undefined : 'the store is not shared between processes'

export const needsDurable = (powers: Powers): string | undefined =>
  powers.durable ? undefined : 'the store is not durable'

export const needsWakeups = (powers: Powers): string | undefined =>
  powers.wakeups === 'none' ? 'the store does not wake watchers' : undefined

/** One more handle on the data of this bench. */
export function another(bench: StoreBench): Promise<Store> {
  if (!bench.another) throw new Error('the bench of a shared store must offer another()')
  return bench.another()
}

/** The same data after a close and an open. */
export function reopened(bench: StoreBench): Promise<Store> {
  if (!bench.reopen) throw new Error('the bench of a durable store must offer reopen()')
  return bench.reopen()
}

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
   * Lets time pass for the store. If the server has its own clock, this waits; no check needs more
   * than 200 ms at once.
   */
  advance(ms: number): Promise<void>
  /**
   * Another handle on the same data, as another process would have. Required for a shared store.
   */
  another?(): Promise<Store>
  /** Closes the store and reopens its data. Required for a durable store. */
  reopen?(): Promise<Store>
  /**
   * True: checks of filters try each value in each order and for each count, which takes long on a
   * server. Default: each kind of filter everywhere, and each value once.
   */
  readonly thorough?: boolean
}

/** One guarantee of the store contract, and a function that throws if the store breaks it. */
export interface StoreCheck {
  topic: string
  title: string
  /** Why the check does not apply to a store with these powers. Undefined: it applies. */
  needs?: (powers: Powers) => string | undefined
  run: (bench: StoreBench) => Promise<void>
}

/** Creates checks with the same topic. */
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

/** Another handle on the data of this bench. */
export function openAnother(bench: StoreBench): Promise<Store> {
  if (!bench.another) throw new Error('the store is shared: its bench must implement another()')
  return bench.another()
}

/** Closes the store of this bench and opens it again. */
export function reopen(bench: StoreBench): Promise<Store> {
  if (!bench.reopen) throw new Error('the store is durable: its bench must implement reopen()')
  return bench.reopen()
}

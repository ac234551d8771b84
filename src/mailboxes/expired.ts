/**
 * Tells a listener how many messages were removed. What it throws or rejects with is its own: they are gone, and it must not be able to fail
 * what others asked for.
 */
export function tellExpired(hear: ((count: number) => unknown) | undefined, count: number): void {
  try {
    const returned = hear?.(count)
    if (returned instanceof Promise) returned.catch(() => {})
  } catch {
    // Its own, as said above.
  }
}

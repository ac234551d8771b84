import { vi } from 'vitest'

/**
 * Repeats a check until it throws nothing, and returns its value. The timeout only ends what never
 * happens: the default of Vitest is one second, and a busy machine may take longer.
 */
export function waitFor<T>(
  check: () => T | Promise<T>,
  { timeout = 30_000, interval = 50 }: { timeout?: number; interval?: number } = {},
): Promise<T> {
  return vi.waitFor(check, { timeout, interval })
}

// Vitest registers hooks only while it collects the tests of a file: not in a test, and not in a
// module that an earlier file of the same worker has loaded.

const pending = new Set<() => unknown>()

/**
 * Calls a function once after the current test file, also if it is given several times. Works in
 * tests and in modules that several files share.
 */
export function afterFile(cleanUp: () => unknown): void {
  pending.add(cleanUp)
}

/** Runs all clean-ups of the file. Throws their errors. */
export async function cleanUpFile(): Promise<void> {
  const cleanUps = [...pending]
  pending.clear()
  const results = await Promise.allSettled(cleanUps.map(async (cleanUp) => cleanUp()))
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  if (errors.length > 0) throw new AggregateError(errors, 'the clean-up of a test file failed')
}

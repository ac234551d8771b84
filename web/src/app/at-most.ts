/** Waits for a promise, but not longer than this. The promise goes on. */
export async function atMost(ms: number, promise: Promise<unknown>): Promise<void> {
  await Promise.race([promise, new Promise((resolve) => setTimeout(resolve, ms))])
}

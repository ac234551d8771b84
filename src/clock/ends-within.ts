import type { Clock } from './clock.ts'

/** Whether the work resolves within the time. Rejects if the work rejects in time. */
export async function endsWithin(
  clock: Clock,
  work: Promise<unknown>,
  ms: number,
): Promise<boolean> {
  let cancel = (): void => {}
  const timeUp = new Promise<boolean>((resolve) => {
    cancel = clock.timer(ms, () => resolve(false))
  })
  try {
    return await Promise.race([work.then(() => true), timeUp])
  } finally {
    cancel()
  }
}

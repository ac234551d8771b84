const mebibyte = 1024 * 1024
/** Growth that is no leak: V8 lets garbage wait, and compiles more code. */
const allowedGrowth = 1.25
const allowedBytes = 64 * mebibyte

/**
 * Why memory is not flat: its maximum in the last third is well above that in the middle third. The
 * first third is the start. Undefined: it is flat.
 */
export function memoryGrowth(samples: readonly number[]): string | undefined {
  const third = Math.floor(samples.length / 3)
  if (third === 0) return undefined
  const middle = Math.max(...samples.slice(third, 2 * third))
  const last = Math.max(...samples.slice(2 * third))
  if (last <= middle * allowedGrowth + allowedBytes) return undefined
  return `resident memory grew from ${formatMemory(middle)} to ${formatMemory(last)}`
}

export function formatMemory(bytes: number): string {
  return `${Math.round(bytes / mebibyte)} MiB`
}

/** Durations with a unit, as configuration files may write them where a key ends in `Ms`. */
export const durationPattern = String.raw`^\d+(\.\d+)?(ms|s|m|h|d)$`
/** Sizes with a unit, as configuration files may write them where a key ends in `Bytes`. */
export const sizePattern = String.raw`^\d+(\.\d+)?(B|KiB|MiB|GiB)$`

const durationUnits: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const sizeUnits: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
}

/** Milliseconds: "30s" is 30000. Undefined when the string is not a duration. */
export function parseDuration(string: string): number | undefined {
  return parseQuantity(string, durationPattern, durationUnits)
}

/** Bytes: "16MiB" is 16777216. Undefined when the string is not a size. */
export function parseSize(string: string): number | undefined {
  return parseQuantity(string, sizePattern, sizeUnits)
}

function parseQuantity(
  string: string,
  pattern: string,
  units: Readonly<Record<string, number>>,
): number | undefined {
  if (!new RegExp(pattern).test(string)) return undefined
  const number = Number.parseFloat(string)
  const unit = units[string.replace(/^[\d.]+/, '')]
  // 0.1KiB is not a whole number of bytes: round to the nearest one.
  return unit === undefined ? undefined : Math.round(number * unit)
}

/** A number in the largest unit that leaves no fraction: 90000 ms is "90s". */
export function formatUnits(value: number, kind: 'duration' | 'size'): string {
  const units = Object.entries(kind === 'duration' ? durationUnits : sizeUnits).toReversed()
  const [unit, size] = units.find(([, size]) => value >= size && value % size === 0) ?? ['', 1]
  return `${value / size}${unit}`
}

/** Lengths of time as people write them, wherever a key ends in Ms. */
export const durationPattern = String.raw`^\d+(\.\d+)?(ms|s|m|h|d)$`
/** Sizes as people write them, wherever a key ends in Bytes. */
export const sizePattern = String.raw`^\d+(\.\d+)?(B|KiB|MiB|GiB)$`

const durations: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const sizes: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
}

/** "30s" is 30000. Undefined when it is no such text. */
export function readDuration(text: string): number | undefined {
  return measured(text, durationPattern, durations)
}

/** "16MiB" is 16777216. Undefined when it is no such text. */
export function readSize(text: string): number | undefined {
  return measured(text, sizePattern, sizes)
}

function measured(
  text: string,
  pattern: string,
  units: Readonly<Record<string, number>>,
): number | undefined {
  if (!new RegExp(pattern).test(text)) return undefined
  const number = Number.parseFloat(text)
  const unit = units[text.replace(/^[\d.]+/, '')]
  // A tenth of a KiB is no whole number of bytes; the nearest one is meant.
  return unit === undefined ? undefined : Math.round(number * unit)
}

/** A number in the largest unit that gives it whole: 90000 is "90s". */
export function inUnits(value: number, what: 'duration' | 'size'): string {
  const units = Object.entries(what === 'duration' ? durations : sizes).toReversed()
  const [unit, size] = units.find(([, size]) => value >= size && value % size === 0) ?? ['', 1]
  return `${value / size}${unit}`
}

/** A part of a string: from `start`, before `end`. */
export interface Span {
  start: number
  end: number
}

/** The parts that the spans cover, in order and without overlap. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const merged: Span[] = []
  for (const { start, end } of [...spans].sort((one, other) => one.start - other.start)) {
    const last = merged.at(-1)
    if (last && start <= last.end) last.end = Math.max(last.end, end)
    else merged.push({ start, end })
  }
  return merged
}

/** The text with each span replaced. The spans must be in order and must not overlap. */
export function replaceSpans(
  text: string,
  spans: readonly Span[],
  replace: (covered: string) => string,
): string {
  let result = ''
  let from = 0
  for (const { start, end } of spans) {
    result += text.slice(from, start) + replace(text.slice(start, end))
    from = end
  }
  return result + text.slice(from)
}

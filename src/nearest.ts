/** The known key that is most like a mistyped one, if any is close. */
export function nearest(key: string, known: readonly string[]): string | undefined {
  const scored = known.map((name) => ({
    name,
    distance: distance(key.toLowerCase(), name.toLowerCase()),
  }))
  const best = scored.sort((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.max(2, key.length / 3) ? best.name : undefined
}

/** Edits (insert, delete, replace) between two short words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next.push(
        Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)),
      )
    row = next
  }
  return row[b.length]!
}

/**
 * The known name that is closest to a mistyped one: at most one edit per three characters, but at
 * least one edit is allowed. A prefix of a known name counts as one edit.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const scored = known.map((candidate) => ({
    candidate,
    edits: isPrefix(name, candidate) ? 1 : countEdits(name.toLowerCase(), candidate.toLowerCase()),
  }))
  const best = scored.sort((a, b) => a.edits - b.edits)[0]
  return best && best.edits <= Math.max(1, Math.floor(name.length / 3)) ? best.candidate : undefined
}

function isPrefix(name: string, candidate: string): boolean {
  return name.length >= 3 && candidate.toLowerCase().startsWith(name.toLowerCase())
}

/** Edits (insert, delete, replace, swap of two neighbours) between two short words. */
function countEdits(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = swapped ? before[j - 2]! + 1 : Infinity
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, replaced, swap))
    }
    before = row
    row = next
  }
  return row[b.length]!
}

import type { LetterSummary } from '../letter/letter.ts'

type Known = ReadonlyMap<string, LetterSummary>

/**
 * Whether a letter waits for one that was put away or removed before it was resolved. One that is gone may have been resolved before; so as
 * long as another is still on its way, that one is waited for.
 */
export function isOrphan({ dependsOn = [] }: LetterSummary, there: Known): boolean {
  const known = dependsOn.map((id) => there.get(id)).filter((letter) => letter !== undefined)
  const unresolved = known.filter(({ state }) => state !== 'resolved')
  const shelved = unresolved.filter(({ state }) => state === 'archived')
  return (
    shelved.some(({ archivedFrom }) => archivedFrom !== 'resolved') ||
    unresolved.length === shelved.length
  )
}

/** Whether a letter waits for itself, be it round a corner: for one that waits for one that waits for it. */
export function waitsForItself({ id, dependsOn = [] }: LetterSummary, there: Known): boolean {
  const seen = new Set<string>()
  const ahead = [...dependsOn]
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if (next === id) return true
    const letter = there.get(next)
    // What is parked or exhausted waits for a person, who is told.
    if (letter?.state !== 'pending' || seen.has(next)) continue
    seen.add(next)
    ahead.push(...(letter.dependsOn ?? []))
  }
  return false
}

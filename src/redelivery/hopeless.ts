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

/** A letter on the way along what waits for what. */
interface Step {
  letter: LetterSummary
  /** How many steps were begun before it, and the earliest of those that its way comes back to. */
  nth: number
  earliest: number
  /** How many of those that it waits for have been followed. */
  followed: number
  /** Where it stands among those whose circle may still grow; undefined when that is settled. */
  place: number | undefined
}

/**
 * Those that wait for themselves, be it round a corner: for one that waits for one that waits for it. Each is looked at once, however
 * many ways lead to it (Tarjan's algorithm), since this holds up all else that the process does.
 */
export function waitingForThemselves(there: Known): Set<string> {
  const found = new Set<string>()
  const steps = new Map<string, Step>()
  const unsettled: Step[] = []
  const way: Step[] = []
  const go = (letter: LetterSummary): void => {
    const nth = steps.size
    const step: Step = { letter, nth, earliest: nth, followed: 0, place: unsettled.length }
    steps.set(letter.id, step)
    unsettled.push(step)
    way.push(step)
  }
  const follow = (step: Step, id: string): void => {
    const next = there.get(id)
    // What is parked or exhausted waits for a person, who is told.
    if (next?.state !== 'pending') return
    const seen = steps.get(id)
    if (seen === step) found.add(id)
    if (!seen) go(next)
    else if (seen.place !== undefined) step.earliest = Math.min(step.earliest, seen.nth)
  }
  const goBack = (step: Step): void => {
    way.pop()
    const before = way.at(-1)
    if (before) before.earliest = Math.min(before.earliest, step.earliest)
    if (step.earliest < step.nth) return
    const circle = unsettled.splice(step.place!)
    for (const one of circle) one.place = undefined
    if (circle.length > 1) for (const { letter } of circle) found.add(letter.id)
  }
  for (const letter of there.values()) {
    if (letter.state === 'pending' && !steps.has(letter.id)) go(letter)
    for (let step = way.at(-1); step; step = way.at(-1)) {
      const id = step.letter.dependsOn?.[step.followed++]
      if (id === undefined) goBack(step)
      else follow(step, id)
    }
  }
  return found
}

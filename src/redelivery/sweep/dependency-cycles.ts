import type { LetterSummary } from '../../letter/letter.ts'

type LettersById = ReadonlyMap<string, LetterSummary>

/**
 * Whether a letter depends on one that was archived or removed before it was resolved. A removed
 * letter may have been resolved before: as long as another dependency is open, the letter waits.
 */
export function isOrphan({ dependsOn = [] }: LetterSummary, known: LettersById): boolean {
  const existing = dependsOn.map((id) => known.get(id)).filter((letter) => letter !== undefined)
  const unresolved = existing.filter(({ state }) => state !== 'resolved')
  const archived = unresolved.filter(({ state }) => state === 'archived')
  return (
    archived.some(({ archivedFrom }) => archivedFrom !== 'resolved') ||
    unresolved.length === archived.length
  )
}

/** A letter during the depth-first search. */
interface Node {
  letter: LetterSummary
  /** Order of discovery, and the lowest index reachable from here (Tarjan's `lowlink`). */
  index: number
  lowest: number
  /** Number of dependencies that have been followed. */
  followed: number
  /** Position on the component stack, or undefined once its component is complete. */
  position: number | undefined
}

/**
 * Ids of pending letters in a dependency cycle: Tarjan's algorithm for strongly connected
 * components, iterative, so each letter is visited once and long chains need no deep call stack.
 */
export function findDependencyCycles(known: LettersById): Set<string> {
  const found = new Set<string>()
  const nodes = new Map<string, Node>()
  const component: Node[] = []
  const path: Node[] = []
  const enter = (letter: LetterSummary): void => {
    const index = nodes.size
    const node: Node = { letter, index, lowest: index, followed: 0, position: component.length }
    nodes.set(letter.id, node)
    component.push(node)
    path.push(node)
  }
  const follow = (node: Node, id: string): void => {
    const next = known.get(id)
    // A parked or exhausted letter waits for a person, who has been notified.
    if (next?.state !== 'pending') return
    const seen = nodes.get(id)
    if (seen === node) found.add(id)
    if (!seen) enter(next)
    else if (seen.position !== undefined) node.lowest = Math.min(node.lowest, seen.index)
  }
  const leave = (node: Node): void => {
    path.pop()
    const parent = path.at(-1)
    if (parent) parent.lowest = Math.min(parent.lowest, node.lowest)
    if (node.lowest < node.index) return
    const members = component.splice(node.position!)
    for (const member of members) member.position = undefined
    if (members.length > 1) for (const { letter } of members) found.add(letter.id)
  }
  for (const letter of known.values()) {
    if (letter.state === 'pending' && !nodes.has(letter.id)) enter(letter)
    for (let node = path.at(-1); node; node = path.at(-1)) {
      const id = node.letter.dependsOn?.[node.followed++]
      if (id === undefined) leave(node)
      else follow(node, id)
    }
  }
  return found
}

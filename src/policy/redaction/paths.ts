/** The parts of a letter that a path can begin with. Operations and workflows have a `context`. */
const redactedRoots = ['payload', 'headers', 'metadata', 'context'] as const
export type RedactedRoot = (typeof redactedRoots)[number]

/** The segments of a path that still have to match. Linked, so that equal rests are the same. */
export interface Segments {
  head: string
  rest?: Segments
}

/** A path such as `payload.items.*.email`: the part of the letter, and the segments below it. */
export interface RedactedPath {
  root: RedactedRoot
  segments: Segments
}

const maxSegments = 20

/** Reads a path. Throws a TypeError that says what is wrong. */
export function readPath(path: string): RedactedPath {
  const [root, ...segments] = path.split('.')
  const known = redactedRoots.find((one) => one === root)
  if (known === undefined)
    throw new TypeError(
      `must begin with ${redactedRoots.join('., ')}., got ${JSON.stringify(path)}`,
    )
  if (segments.length === 0 || segments.length > maxSegments || segments.includes(''))
    throw new TypeError(
      `must name from 1 to ${maxSegments} keys after ${root}, separated by dots, got ${JSON.stringify(path)}`,
    )
  if (segments.at(-1) === '**')
    throw new TypeError(`must not end with **, got ${JSON.stringify(path)}: name a key, or *`)
  return { root: known, segments: link(segments) }
}

function link([head, ...rest]: readonly string[]): Segments {
  return rest.length === 0 ? { head: head! } : { head: head!, rest: link(rest) }
}

/**
 * What remains of the paths below a key. `isMatch`: a path ends with the key. `*` is any key or
 * index, `**` any number of them.
 */
export function descend(
  paths: readonly Segments[],
  key: string,
  isSame: (segment: string, key: string) => boolean = (segment, name) => segment === name,
): { isMatch: boolean; below: Segments[] } {
  const below = new Set<Segments>()
  let isMatch = false
  const step = (path: Segments): void => {
    const { head, rest } = path
    if (head === '**') {
      below.add(path)
      if (rest) step(rest)
    } else if (head === '*' || isSame(head, key)) {
      if (rest) below.add(rest)
      else isMatch = true
    }
  }
  for (const path of paths) step(path)
  return { isMatch, below: [...below] }
}

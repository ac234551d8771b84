import { describe, expect, it } from 'vitest'
import { endpointNames, endpointOf } from '../../src/api/endpoints.ts'

/** The segments of a path. Undefined: a key of the input, which can have any value. */
function segmentsOf(path: string): (string | undefined)[] {
  return path.split('/').map((segment) => (segment.startsWith('{') ? undefined : segment))
}

/** Whether a value of the keys of `path` gives the path `other`. */
function canBecome(path: string, other: string): boolean {
  const own = segmentsOf(path)
  const fixed = segmentsOf(other)
  return (
    own.length === fixed.length &&
    own.every((segment, index) => segment === undefined || segment === fixed[index])
  )
}

describe('paths', () => {
  it('hide no queue, letter or other thing whose name is part of the path of another endpoint', () => {
    const all = endpointNames.map(endpointOf)
    const hidden = all.flatMap(({ method, path }) =>
      all
        .filter((other) => other.method === method && other.path !== path)
        .filter((other) => canBecome(path, other.path))
        .map((other) => `${method} ${other.path} hides a value of ${path}`),
    )
    expect(hidden).toEqual([])
  })
})

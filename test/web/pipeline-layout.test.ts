import { describe, expect, it } from 'vitest'
import { placeNodes } from '../../web/src/pages/queues/pipeline-layout.ts'

/** A graph from lines such as `a > b c`. */
function graph(...lines: string[]) {
  return lines.map((line) => {
    const [node = '', targets = ''] = line.split(' > ')
    return {
      node,
      next: targets
        .split(' ')
        .filter(Boolean)
        .map((target) => ({ node: target })),
    }
  })
}

describe('placeNodes', () => {
  it('places each node after the last of its predecessors', () => {
    expect([...placeNodes(graph('a > b c', 'b > c', 'c')).values()]).toEqual([
      { column: 0, row: 0 },
      { column: 1, row: 1 },
      { column: 2, row: 0 },
    ])
  })

  it('keeps the row of a long edge free of nodes', () => {
    const places = placeNodes(
      graph('a > b c', 'b > d', 'c > e', 'd > e', 'e', 'x > y', 'y > z', 'z'),
    )
    expect(places.get('c')).toEqual({ column: 1, row: 1 })
    expect(places.get('d')).toEqual({ column: 2, row: 0 })
    expect(places.get('z')).toEqual({ column: 2, row: 2 })
  })

  it('accepts cycles and no nodes', () => {
    expect([...placeNodes(graph('a > b', 'b > a')).keys()]).toEqual(['a', 'b'])
    expect(placeNodes([]).size).toBe(0)
  })
})

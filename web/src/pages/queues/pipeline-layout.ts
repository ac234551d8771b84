/** A node as far as its place in the drawing depends on it. */
export interface GraphNode {
  node: string
  next: readonly { node: string }[]
}

export interface Place {
  column: number
  row: number
}

/**
 * Places each node in the column after the last of its predecessors, in the order of the list.
 * Edges of a cycle that lead back do not count. An edge over several columns takes up the row of
 * its first node in the columns between, if no node is there yet.
 */
export function placeNodes(nodes: readonly GraphNode[]): Map<string, Place> {
  const columns = new Map<string, number>()
  const byName = new Map(nodes.map((node) => [node.node, node]))
  const visit = (name: string, column: number, path: ReadonlySet<string>): void => {
    const node = byName.get(name)
    if (!node || path.has(name) || (columns.get(name) ?? -1) >= column) return
    columns.set(name, column)
    const longer = new Set(path).add(name)
    for (const { node: next } of node.next) visit(next, column + 1, longer)
  }
  const targets = new Set(nodes.flatMap(({ next }) => next.map(({ node }) => node)))
  for (const { node } of nodes) if (!targets.has(node)) visit(node, 0, new Set())
  // What is left is part of a cycle without a start.
  for (const { node } of nodes) if (!columns.has(node)) visit(node, 0, new Set())
  const taken = new Set<string>()
  const take = (column: number, row: number): void => void taken.add(`${column} ${row}`)
  return new Map(
    nodes.map(({ node, next }) => {
      const column = columns.get(node)!
      let row = 0
      while (taken.has(`${column} ${row}`)) row++
      take(column, row)
      for (const { node: target } of next)
        for (let between = column + 1; between < (columns.get(target) ?? 0); between++)
          take(between, row)
      return [node, { column, row }]
    }),
  )
}

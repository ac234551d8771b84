import { Box } from '@mantine/core'
import { formatCount } from '../../format/number.ts'
import { placeNodes } from './pipeline-layout.ts'
import type { PipelineNode } from './pipeline-page.tsx'
import classes from './pipeline-graph.module.css'

const nodeWidth = 168
const nodeHeight = 48
const gapX = 56
const gapY = 20
const margin = 4

/** Draws the nodes of a graph from left to right. A node with dead records is marked. */
export function PipelineGraph({
  nodes,
  onSelect,
}: {
  nodes: readonly PipelineNode[]
  onSelect: ((node: PipelineNode) => void) | undefined
}) {
  const places = placeNodes(nodes)
  const at = (name: string): { x: number; y: number } | undefined => {
    const place = places.get(name)
    return (
      place && {
        x: margin + place.column * (nodeWidth + gapX),
        y: margin + place.row * (nodeHeight + gapY),
      }
    )
  }
  const all = [...places.values()]
  const width = (Math.max(...all.map(({ column }) => column)) + 1) * (nodeWidth + gapX) - gapX
  const height = (Math.max(...all.map(({ row }) => row)) + 1) * (nodeHeight + gapY) - gapY
  return (
    <Box className={classes.scroll} tabIndex={0} role="group" aria-label="Graph of the pipeline">
      <svg width={width + 2 * margin} height={height + 2 * margin} className={classes.graph}>
        <title>Nodes and where their streams go</title>
        {nodes.flatMap(({ node, next }) =>
          next.map(({ node: target, topic }) => {
            const from = at(node)
            const to = at(target)
            return (
              from &&
              to && (
                <path
                  key={`${node} ${target} ${topic}`}
                  className={classes.edge}
                  d={edge(from, to)}
                >
                  <title>{topic}</title>
                </path>
              )
            )
          }),
        )}
        {nodes.map((node) => {
          const { x, y } = at(node.node)!
          return (
            <g
              key={node.node}
              transform={`translate(${x} ${y})`}
              className={classes.node}
              data-dead={(node.depth ?? 0) > 0}
              onClick={() => node.depth !== 0 && onSelect?.(node)}
            >
              <title>{node.name}</title>
              <rect width={nodeWidth} height={nodeHeight} rx={6} />
              <text x={12} y={20} className={classes.name}>
                {node.name.length > 22 ? `${node.name.slice(0, 21)}…` : node.name}
              </text>
              <text x={12} y={38} className={classes.depth}>
                {node.depth === null ? 'depth unknown' : `${formatCount(node.depth)} dead records`}
              </text>
            </g>
          )
        })}
      </svg>
    </Box>
  )
}

/**
 * A line from the right side of a node to the left side of the next. It stays in the row of the
 * first node, and bends in the gap before the second.
 */
function edge(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const [x1, y1] = [from.x + nodeWidth, from.y + nodeHeight / 2]
  const [x2, y2] = [to.x, to.y + nodeHeight / 2]
  const start = Math.max(x1, x2 - gapX)
  const bend = Math.max(24, (x2 - start) / 2)
  return `M${x1} ${y1}H${start}C${start + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
}

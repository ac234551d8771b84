import { useState } from 'react'
import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useCan, useSeesAll } from '../../app/session.tsx'
import { formatCount } from '../../format/number.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { Age } from '../../ui/time.tsx'
import { PipelineGraph } from './pipeline-graph.tsx'
import { QueueTabs } from './queue-tabs.tsx'
import { ReplayDialog } from './replay-dialog.tsx'

export type PipelineNode = OutputOf<'getPipeline'>['nodes'][number]

/** The graphs of the pipeline, with the dead records of each node. */
export function PipelinePage() {
  const seesAll = useSeesAll()
  return (
    <Page
      title="Pipeline"
      description="Graphs of nodes on Kafka, and the records that died in them."
    >
      <QueueTabs />
      {seesAll ? (
        <Pipeline />
      ) : (
        <Empty title="You do not see pipelines">
          A pipeline is not part of a queue, and you are limited to some queues or tenants.
        </Empty>
      )}
    </Page>
  )
}

function Pipeline() {
  const can = useCan()
  const pipeline = useQuery(queries.pipeline())
  const [replayed, setReplayed] = useState<PipelineNode>()
  const onReplay = can('letter:replay') ? setReplayed : undefined
  return (
    <>
      <Loaded query={pipeline}>
        {({ nodes }) =>
          nodes.length === 0 ? (
            <Panel>
              <Empty title="This server has no pipeline">
                Start it with the file of the graphs: redrive serve --pipeline pipeline.yaml
              </Empty>
            </Panel>
          ) : (
            <>
              {graphsOf(nodes).map(([graph, members]) => (
                <Panel key={graph} title={graph}>
                  <PipelineGraph nodes={members} onSelect={onReplay} />
                </Panel>
              ))}
              <Panel title="Nodes" padded={false}>
                <DataTable
                  label="Nodes"
                  columns={columnsWith(can('letter:replay') ? setReplayed : undefined)}
                  rows={nodes}
                  keyOf={({ graph, node }) => `${graph}/${node}`}
                />
              </Panel>
            </>
          )
        }
      </Loaded>
      {replayed && <ReplayDialog node={replayed} onClose={() => setReplayed(undefined)} />}
    </>
  )
}

function graphsOf(nodes: readonly PipelineNode[]): [string, PipelineNode[]][] {
  return [...Map.groupBy(nodes, ({ graph }) => graph)]
}

function columnsWith(onReplay: ((node: PipelineNode) => void) | undefined): Column<PipelineNode>[] {
  return [
    { title: 'Node', cell: ({ name }) => <bdi>{name}</bdi> },
    { title: 'Input topic', cell: ({ inputTopic }) => <bdi>{inputTopic}</bdi> },
    {
      title: 'Dead records',
      align: 'right',
      cell: ({ depth, problem }) =>
        depth === null ? <span title={problem}>unknown</span> : formatCount(depth),
    },
    {
      title: 'Oldest',
      cell: ({ oldestAt }) =>
        oldestAt === null ? <span className="dim">none</span> : <Age since={oldestAt} />,
    },
    {
      title: 'Quarantined',
      align: 'right',
      cell: ({ quarantined }) => (quarantined === null ? 'unknown' : formatCount(quarantined)),
    },
    {
      title: '',
      label: 'Actions',
      align: 'right',
      cell: (node) =>
        onReplay && (
          <Group justify="flex-end">
            <Button
              variant="default"
              disabled={node.depth === 0}
              onClick={() => onReplay(node)}
              aria-label={`Replay ${node.name}`}
            >
              Replay
            </Button>
          </Group>
        ),
    },
  ]
}

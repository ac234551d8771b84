import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { StateCounts } from '../../ui/state-counts.tsx'
import { queueColumn, statusColumn } from '../queues/queue-columns.tsx'

type Queue = OutputOf<'listQueues'>['items'][number]

const shown = 8

/** The queues with the most letters. */
export function QueueHealth() {
  const queues = useQuery(queries.queues())
  const { data: limiters = [] } = useQuery(queries.flowControl())
  return (
    <Panel title="Queues" padded={false} right={<Link to="/queues">All queues</Link>}>
      <Loaded query={queues}>
        {({ items }) => (
          <DataTable
            label="Queues with the most letters"
            columns={columnsWith(limiters)}
            rows={items.toSorted((a, b) => b.count - a.count).slice(0, shown)}
            keyOf={({ queue }) => queue}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function columnsWith(limiters: OutputOf<'getFlowControl'>): Column<Queue>[] {
  return [
    queueColumn,
    statusColumn(limiters),
    { title: 'Letters by state', cell: ({ states }) => <StateCounts states={states} /> },
  ]
}

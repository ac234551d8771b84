import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { BulkActionView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { actionTitle } from '../bulk/bulk-request.ts'
import { BulkStateBadge } from '../bulk/bulk-state.tsx'
import { ProgressBar } from '../bulk/progress-bar.tsx'

const shown = 6

/** The latest bulk actions. */
export function LatestBulkActions() {
  const actions = useQuery(queries.bulkActions())
  return (
    <Panel
      title="Bulk actions"
      padded={false}
      right={<Link to="/bulk-actions">All bulk actions</Link>}
    >
      <Loaded query={actions}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="There was no bulk action yet">
              Select letters or open a group to act on all of its letters.
            </Empty>
          ) : (
            <DataTable
              label="Latest bulk actions"
              columns={columns}
              rows={list.slice(0, shown)}
              keyOf={({ id }) => id}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

const columns: Column<BulkActionView>[] = [
  {
    title: 'Action',
    cell: ({ id, action, count }) => (
      <Link to="/bulk-actions/$id" params={{ id }} className="plain">
        {actionTitle(action, count)}
      </Link>
    ),
  },
  { title: 'State', cell: (action) => <BulkStateBadge action={action} /> },
  { title: 'Progress', width: 180, cell: (action) => <ProgressBar action={action} /> },
]

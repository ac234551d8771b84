import { Progress } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { BulkActionView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import { capitalize } from '../../format/text.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'

const shown = 6

/** Bulk actions that run or wait for a person, and the latest others. */
export function ActiveBulkActions() {
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
        {capitalize(action)} {formatAmount(count, 'letter')}
      </Link>
    ),
  },
  { title: 'State', cell: ({ state }) => state },
  { title: 'Progress', width: 180, cell: (action) => <ActionProgress action={action} /> },
]

function ActionProgress({ action: { count, progress } }: { action: BulkActionView }) {
  const done = count - progress.pending - progress.waiting
  const percent = count === 0 ? 100 : (done / count) * 100
  return (
    <Progress
      value={percent}
      size="sm"
      aria-label={`${formatCount(done)} of ${formatCount(count)} letters done`}
      title={`${formatCount(done)} of ${formatCount(count)} letters done`}
    />
  )
}

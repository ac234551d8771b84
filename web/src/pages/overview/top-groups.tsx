import { Badge } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { GroupView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { openStates } from '../../ui/state.tsx'
import { Sparkline } from '../../ui/sparkline.tsx'
import { Time } from '../../ui/time.tsx'

const shown = 8

/** The causes with the most open letters. */
export function TopGroups() {
  const groups = useQuery(queries.topGroups(shown, openStates))
  return (
    <Panel
      title="Causes with the most open letters"
      padded={false}
      right={<Link to="/groups">All groups</Link>}
    >
      <Loaded query={groups}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No open cause">
              Every group is resolved or ignored, or has no open letters.
            </Empty>
          ) : (
            <DataTable
              label="Causes with the most open letters"
              columns={columns}
              rows={items}
              keyOf={({ fingerprint }) => fingerprint}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

const columns: Column<GroupView>[] = [
  {
    title: 'Cause',
    cell: ({ fingerprint, title, queue }) => (
      <>
        <Link to="/groups/$fingerprint" params={{ fingerprint }} className="plain">
          <bdi>{title}</bdi>
        </Link>{' '}
        <span className="dim">
          <bdi>{queue}</bdi>
        </span>
      </>
    ),
  },
  {
    title: 'Last 24 h',
    width: 110,
    cell: ({ trend }) => (
      <Sparkline
        values={trend}
        label={`${formatAmount(sum(trend), 'failure')} in the last 24 hours`}
      />
    ),
  },
  { title: 'Open', align: 'right', cell: ({ count }) => formatCount(count) },
  {
    title: 'Change, 24 h',
    align: 'right',
    cell: ({ growth }) =>
      growth === 0 ? (
        <span className="dim">0</span>
      ) : (
        `${growth > 0 ? '+' : ''}${formatCount(growth)}`
      ),
  },
  { title: 'Last seen', width: 110, cell: ({ lastSeen }) => <Time at={lastSeen} /> },
  {
    title: 'Status',
    width: 100,
    cell: ({ status }) => <Badge color={status === 'regressed' ? 'red' : 'gray'}>{status}</Badge>,
  },
]

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0)
}

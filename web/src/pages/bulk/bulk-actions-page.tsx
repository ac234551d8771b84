import { Button, Switch, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { BulkActionView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useNow } from '../../app/preferences.tsx'
import { formatCount } from '../../format/number.ts'
import { countDone } from '../../format/progress.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { actionTitle } from './bulk-request.ts'
import { BulkStateBadge } from './bulk-state.tsx'
import { ProgressBar } from './progress-bar.tsx'

const route = getRouteApi('/signed-in/bulk-actions')

/** The latest actions on many letters. */
export function BulkActionsPage() {
  const { plans } = route.useSearch()
  const navigate = useNavigate()
  const now = useNow()
  const query = useQuery(queries.bulkActions())
  const showsAll = plans === 'all'
  return (
    <Page
      title="Bulk actions"
      description="Actions on many letters: planned first, then run by the workers."
      actions={
        <Switch
          size="xs"
          label="Also plans that nobody ran"
          checked={showsAll}
          onChange={({ currentTarget }) =>
            void navigate({
              to: '/bulk-actions',
              search: currentTarget.checked ? { plans: 'all' } : {},
              replace: true,
            })
          }
        />
      }
    >
      <Panel padded={false}>
        <Loaded query={query}>
          {(all) => {
            const actions = showsAll ? all : all.filter((action) => !wasNeverRun(action, now))
            return actions.length === 0 ? (
              <NoActions />
            ) : (
              <DataTable
                label="Bulk actions"
                columns={columns}
                rows={actions}
                keyOf={({ id }) => id}
              />
            )
          }}
        </Loaded>
      </Panel>
    </Page>
  )
}

/** Plans that were dropped or have expired. */
function wasNeverRun({ state, startedAt, expiresAt }: BulkActionView, nowMs: number): boolean {
  if (startedAt !== undefined) return false
  return state === 'cancelled' || Date.parse(expiresAt) < nowMs
}

function NoActions() {
  return (
    <Empty
      title="There are no bulk actions"
      action={
        <Button component={Link} to="/letters">
          Open the letters
        </Button>
      }
    >
      Select letters, a group or a queue, and choose what happens to all of them. The plan shows the
      effect before anything changes.
    </Empty>
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
  { title: 'State', width: 150, cell: (action) => <BulkStateBadge action={action} /> },
  {
    title: 'Progress',
    width: 200,
    cell: (action) => (
      <>
        <ProgressBar action={action} />
        <Text size="xs" c="dimmed" mt={4} className="numbers">
          {formatCount(countDone(action.progress))} of {formatCount(action.count)}
          {action.progress.failed > 0 && `, ${formatCount(action.progress.failed)} failed`}
        </Text>
      </>
    ),
  },
  { title: 'By', width: 130, cell: ({ by }) => <bdi>{by.slice(0, 100)}</bdi> },
  {
    title: 'When',
    width: 124,
    cell: ({ startedAt, plannedAt }) => <Time at={startedAt ?? plannedAt} />,
  },
  { title: 'Reason', cell: ({ reason }) => reason && <bdi>{reason.slice(0, 300)}</bdi> },
]

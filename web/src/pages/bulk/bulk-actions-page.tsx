import { Button, Switch, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { BulkActionView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useNow } from '../../app/preferences.tsx'
import { formatCount } from '../../format/number.ts'
import { countDone } from '../../format/progress.ts'
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
            return actions.length === 0 ? <NoActions /> : <ActionTable actions={actions} />
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

function ActionTable({ actions }: { actions: readonly BulkActionView[] }) {
  return (
    <Table.ScrollContainer minWidth={760}>
      <Table highlightOnHover horizontalSpacing="md">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>State</Table.Th>
            <Table.Th>Action</Table.Th>
            <Table.Th>Progress</Table.Th>
            <Table.Th>By</Table.Th>
            <Table.Th>When</Table.Th>
            <Table.Th>Reason</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {actions.map((action) => (
            <ActionRow key={action.id} action={action} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

function ActionRow({ action }: { action: BulkActionView }) {
  const { id, count, progress, by, plannedAt, startedAt, reason } = action
  return (
    <Table.Tr>
      <Table.Td>
        <BulkStateBadge action={action} />
      </Table.Td>
      <Table.Td>
        <Link to="/bulk-actions/$id" params={{ id }} className="plain">
          {actionTitle(action.action, count)}
        </Link>
      </Table.Td>
      <Table.Td miw={180}>
        <ProgressBar action={action} />
        <Text size="xs" c="dimmed" mt={4} className="numbers">
          {formatCount(countDone(progress))} of {formatCount(count)}
          {progress.failed > 0 && `, ${formatCount(progress.failed)} failed`}
        </Text>
      </Table.Td>
      <Table.Td maw={160} className="line">
        <bdi>{by}</bdi>
      </Table.Td>
      <Table.Td>
        <Time at={startedAt ?? plannedAt} />
      </Table.Td>
      <Table.Td maw={320} className="line" title={reason}>
        <bdi>{reason?.slice(0, 300)}</bdi>
      </Table.Td>
    </Table.Tr>
  )
}

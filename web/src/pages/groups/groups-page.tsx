import { Button, Group, MultiSelect, Select } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import type { GroupView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatCount } from '../../format/number.ts'
import { toWords } from '../../format/text.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { SkeletonRows } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Sparkline } from '../../ui/sparkline.tsx'
import { StateCounts } from '../../ui/state-counts.tsx'
import { stateNames } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { GroupStatus } from './group-status.tsx'
import { statusNames, type GroupsSearch } from './groups-search.ts'

/** Letters by cause. */
export function GroupsPage() {
  const search = useSearch({ from: '/signed-in/groups' })
  const isFiltered =
    search.status !== undefined || search.queue !== undefined || search.state !== undefined
  return (
    <Page
      title="Groups"
      description="Letters with the same cause. Fix a cause once, then act on all of its letters."
    >
      <Panel right={<Filters search={search} />} padded={false}>
        <GroupList search={search} isFiltered={isFiltered} />
      </Panel>
    </Page>
  )
}

function useChangeSearch(): (search: GroupsSearch) => void {
  const navigate = useNavigate()
  return (search) => void navigate({ to: '/groups', search })
}

/** The search with a key changed. An empty list leaves the key out. */
function withList<K extends 'status' | 'state' | 'queue'>(
  search: GroupsSearch,
  key: K,
  values: readonly string[],
): GroupsSearch {
  const { [key]: _, ...rest } = search
  return values.length > 0 ? { ...rest, [key]: values } : rest
}

/** Two filters in a line of a phone. */
const filterFlex = { base: '1 1 140px', sm: '0 1 210px' }

function Filters({ search }: { search: GroupsSearch }) {
  const change = useChangeSearch()
  const { data: queues } = useQuery(queries.queues())
  const names = new Set([
    ...(queues?.items ?? []).map(({ queue }) => queue),
    ...(search.queue ?? []),
  ])
  return (
    <Group gap={8} py={4} w="100%">
      <MultiSelect
        aria-label="Status"
        placeholder={search.status ? '' : 'Any status'}
        data={[...statusNames]}
        value={search.status ?? []}
        onChange={(values) => change(withList(search, 'status', values))}
        clearable
        size="xs"
        flex={filterFlex}
        miw={0}
      />
      <MultiSelect
        aria-label="Queue"
        placeholder={search.queue ? '' : 'Any queue'}
        data={[...names]}
        value={search.queue ?? []}
        onChange={(values) => change(withList(search, 'queue', values))}
        searchable
        clearable
        limit={100}
        size="xs"
        flex={filterFlex}
        miw={0}
      />
      <MultiSelect
        aria-label="Count letters in the states"
        placeholder={search.state ? '' : 'Letters in any state'}
        data={[...stateNames]}
        value={search.state ?? []}
        onChange={(values) => change(withList(search, 'state', values))}
        clearable
        size="xs"
        flex={filterFlex}
        miw={0}
      />
      <Select
        aria-label="Order"
        data={[
          { value: 'count', label: 'Most letters first' },
          { value: 'lastSeen', label: 'Last seen first' },
          { value: 'growth', label: 'Growing fastest first' },
        ]}
        value={search.sort ?? 'count'}
        allowDeselect={false}
        onChange={(sort) => change({ ...search, sort: sort ?? 'count' })}
        size="xs"
        flex={filterFlex}
        miw={0}
        ml={{ sm: 'auto' }}
      />
    </Group>
  )
}

function GroupList({ search, isFiltered }: { search: GroupsSearch; isFiltered: boolean }) {
  const change = useChangeSearch()
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    queries.groups(search),
  )
  const rows = data?.pages.flatMap(({ items }) => items)
  if (!rows)
    return error ? (
      <Problem error={error} onRetry={() => void refetch()} />
    ) : (
      <SkeletonRows rows={8} />
    )
  if (rows.length === 0 && !hasNextPage)
    return isFiltered ? (
      <Empty
        title="No group matches these filters"
        action={
          <Button variant="default" onClick={() => change({})}>
            Clear the filters
          </Button>
        }
      />
    ) : (
      <Empty title="No failures yet">
        A group appears here with the first letter. The overview shows how to send one.
      </Empty>
    )
  return (
    <>
      <DataTable
        label="Groups"
        columns={columns}
        rows={rows}
        keyOf={({ fingerprint }) => fingerprint}
      />
      {hasNextPage && (
        <Group justify="center" p={12}>
          <Button
            variant="default"
            loading={isFetchingNextPage}
            onClick={() => void fetchNextPage()}
          >
            Show more groups
          </Button>
        </Group>
      )}
    </>
  )
}

/** `+12` or `-3`: failures of the last 24 hours compared with the 24 hours before. */
export function formatGrowth(growth: number): string {
  return `${growth > 0 ? '+' : ''}${formatCount(growth)}`
}

const columns: Column<GroupView>[] = [
  {
    title: 'Cause',
    cell: ({ fingerprint, title, queue, category, hidden }) => (
      <>
        <Link to="/groups/$fingerprint" params={{ fingerprint }} className="plain">
          <bdi>{hidden ? 'Hidden: needs payload:read' : title.slice(0, 200)}</bdi>
        </Link>
        <div className="dim">
          <bdi>{queue.slice(0, 100)}</bdi>, {toWords(category)}
        </div>
      </>
    ),
  },
  {
    title: 'Last 24 h',
    width: 104,
    cell: ({ trend }) => (
      <Sparkline
        values={trend}
        label={`${formatCount(trend.reduce((sum, one) => sum + one, 0))} failures in the last 24 hours`}
      />
    ),
  },
  {
    title: 'Change',
    align: 'right',
    width: 80,
    cell: ({ growth }) => (
      <span
        className={growth > 0 ? undefined : 'dim'}
        title="Failures of the last 24 hours, minus those of the 24 hours before"
      >
        {formatGrowth(growth)}
      </span>
    ),
  },
  { title: 'Letters', align: 'right', width: 80, cell: ({ count }) => formatCount(count) },
  { title: 'By state', width: 170, cell: ({ states }) => <StateCounts states={states} /> },
  { title: 'First seen', width: 124, cell: ({ firstSeen }) => <Time at={firstSeen} /> },
  { title: 'Last seen', width: 124, cell: ({ lastSeen }) => <Time at={lastSeen} /> },
  {
    title: 'Status',
    width: 110,
    cell: ({ status, assignee }) => (
      <>
        <GroupStatus status={status} />
        {assignee !== undefined && (
          <div className="dim">
            <bdi>{assignee.slice(0, 60)}</bdi>
          </div>
        )}
      </>
    ),
  },
]

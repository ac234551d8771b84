import { Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatCount } from '../../format/number.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { StateCounts } from '../../ui/state-counts.tsx'
import { Age } from '../../ui/time.tsx'
import { PauseButton } from './pause-button.tsx'
import { queueColumn, statusColumn } from './queue-columns.tsx'
import { QueueTabs } from './queue-tabs.tsx'

type Queue = OutputOf<'listQueues'>['items'][number]

const route = getRouteApi('/signed-in/queues')

/** All queues with what waits in them. */
export function QueuesPage() {
  const { name = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const queues = useQuery(queries.queues())
  const { data: limiters } = useQuery(queries.flowControl())
  return (
    <Page title="Queues" description="Work that failed, by where it came from.">
      <QueueTabs />
      <Panel
        title="All queues"
        padded={false}
        right={
          <TextInput
            aria-label="Find a queue"
            placeholder="Find a queue"
            size="xs"
            leftSection={<Icon name="search" size={12} />}
            value={name}
            onChange={({ currentTarget: { value } }) =>
              void navigate({ search: value === '' ? {} : { name: value }, replace: true })
            }
          />
        }
      >
        <Loaded query={queues}>
          {({ items, cursor }) => (
            <>
              <QueueTable
                queues={items.filter(({ queue }) =>
                  queue.toLowerCase().includes(name.toLowerCase()),
                )}
                isFiltered={name !== ''}
                limiters={limiters ?? []}
              />
              {cursor !== undefined && (
                <Text size="sm" c="dimmed" p={16}>
                  These are the first {formatCount(items.length)} queues by name. Search for others
                  with Ctrl K.
                </Text>
              )}
            </>
          )}
        </Loaded>
      </Panel>
    </Page>
  )
}

function QueueTable({
  queues,
  isFiltered,
  limiters,
}: {
  queues: readonly Queue[]
  isFiltered: boolean
  limiters: OutputOf<'getFlowControl'>
}) {
  if (queues.length === 0)
    return isFiltered ? (
      <Empty title="No queue has this in its name">Clear the search to see all queues.</Empty>
    ) : (
      <Empty title="There are no queues yet">
        A queue appears when its first letter is captured. The overview shows how.
      </Empty>
    )
  return (
    <DataTable
      label="Queues"
      columns={columnsWith(limiters)}
      rows={queues}
      keyOf={({ queue }) => queue}
    />
  )
}

function columnsWith(limiters: OutputOf<'getFlowControl'>): Column<Queue>[] {
  return [
    queueColumn,
    statusColumn(limiters),
    { title: 'Letters', align: 'right', cell: ({ count }) => formatCount(count) },
    { title: 'By state', cell: ({ states }) => <StateCounts states={states} /> },
    {
      title: 'Oldest open',
      cell: ({ oldest }) =>
        oldest ? (
          <Link to="/letters/$id" params={{ id: oldest.id }} className="plain">
            <Age since={oldest.at} />
          </Link>
        ) : (
          <span className="dim">none</span>
        ),
    },
    {
      title: '',
      label: 'Actions',
      align: 'right',
      cell: ({ queue, paused }) => <PauseButton queue={queue} isPaused={paused !== undefined} />,
    },
  ]
}

import { Badge, Tooltip } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { WorkerView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatAmount, formatCount } from '../../format/number.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Id } from '../../ui/id.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { QueueTabs } from './queue-tabs.tsx'

/** The processes that use the store now. */
export function WorkersPage() {
  const workers = useQuery(queries.workers())
  return (
    <Page
      title="Workers"
      description="Servers, workers and programs that use the store. One that has stopped is gone from here within a minute."
    >
      <QueueTabs />
      <Panel title="Processes" padded={false}>
        <Loaded query={workers}>
          {(list) =>
            list.length === 0 ? (
              <Empty title="No process reports to this store">
                Letters wait until a worker with their handlers runs: redrive work
              </Empty>
            ) : (
              <DataTable label="Processes" columns={columns} rows={list} keyOf={({ id }) => id} />
            )
          }
        </Loaded>
      </Panel>
    </Page>
  )
}

const kinds = { server: 'redrive serve', worker: 'redrive work', program: 'program' } as const

const columns: Column<WorkerView>[] = [
  { title: 'Process', cell: ({ kind }) => (kind ? kinds[kind] : 'unknown') },
  {
    title: 'Host',
    cell: ({ host, pid }) =>
      host === undefined ? (
        <span className="dim">unknown</span>
      ) : (
        <bdi>{`${host}:${pid ?? '?'}`}</bdi>
      ),
  },
  { title: 'Id', cell: ({ id }) => <Id id={id} /> },
  {
    title: 'Running',
    align: 'right',
    cell: ({ running, slots }) =>
      running === undefined ? '' : `${formatCount(running)} of ${formatCount(slots ?? running)}`,
  },
  { title: 'Queues', cell: ({ queues, paused }) => <QueueNames queues={queues} paused={paused} /> },
  { title: 'Breakers', cell: ({ limiters }) => <Breakers limiters={limiters ?? []} /> },
  { title: 'Version', cell: ({ version }) => version },
  { title: 'Started', cell: ({ startedAt }) => startedAt && <Time at={startedAt} /> },
  { title: 'Last seen', cell: ({ seenAt }) => <Time at={seenAt} /> },
]

function QueueNames({ queues, paused }: { queues: readonly string[]; paused: readonly string[] }) {
  if (queues.length === 0) return <span className="dim">no handlers</span>
  const text = queues.map((queue) => (paused.includes(queue) ? `${queue} (paused)` : queue))
  return (
    <Tooltip label={text.slice(0, 100).join(', ')}>
      <span>{queues.length <= 2 ? text.join(', ') : formatAmount(queues.length, 'queue')}</span>
    </Tooltip>
  )
}

function Breakers({ limiters }: { limiters: NonNullable<WorkerView['limiters']> }) {
  const open = limiters.filter(({ state }) => state !== 'closed')
  if (open.length === 0) return <span className="dim">all closed</span>
  return (
    <Tooltip label={open.map(({ name, state }) => `${name}: ${state}`).join(', ')}>
      <Badge color="red" tabIndex={0}>
        {formatAmount(open.length, 'breaker')} open
      </Badge>
    </Tooltip>
  )
}

import { Badge, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useNow } from '../../app/preferences.tsx'
import { formatCount } from '../../format/number.ts'
import { formatRelative } from '../../format/time.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Id } from '../../ui/id.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { QueueTabs } from './queue-tabs.tsx'

type Loop = OutputOf<'listMailboxes'>[number]['loops'][number]

/** The mailboxes that loops receive from, and how these loops are doing. */
export function MailboxesPage() {
  const mailboxes = useQuery(queries.mailboxes())
  return (
    <Page
      title="Mailboxes"
      description="Message queues of brokers, and the loops that receive from them."
    >
      <QueueTabs />
      <Loaded query={mailboxes}>
        {(list) =>
          list.length === 0 ? (
            <Panel>
              <Empty title="No loop receives from a mailbox">
                A mailbox appears when a program starts a MainLoop, an EvalLoop or a DLQConsumer and
                reports to this store.
              </Empty>
            </Panel>
          ) : (
            <Stack gap={16}>
              {list.map(({ name, broker, loops }) => (
                <Panel
                  key={`${broker} ${name}`}
                  title={<bdi>{name}</bdi>}
                  right={<Badge color="gray">{broker}</Badge>}
                  padded={false}
                >
                  <DataTable
                    label={`Loops of ${name}`}
                    columns={columns}
                    rows={loops}
                    keyOf={(loop) => `${loop.worker} ${loop.name}`}
                  />
                </Panel>
              ))}
            </Stack>
          )
        }
      </Loaded>
    </Page>
  )
}

const columns: Column<Loop>[] = [
  { title: 'Loop', cell: ({ name, kind }) => <bdi title={kind}>{name}</bdi> },
  { title: 'Status', cell: (loop) => <LoopStatus loop={loop} /> },
  { title: 'Received', align: 'right', cell: ({ counts }) => formatCount(counts.received) },
  { title: 'Processed', align: 'right', cell: ({ counts }) => formatCount(counts.processed) },
  { title: 'Failed', align: 'right', cell: ({ counts }) => formatCount(counts.failed) },
  { title: 'Dead', align: 'right', cell: ({ counts }) => formatCount(counts.dead) },
  {
    title: 'Dead letters go to',
    cell: ({ deadLetters }) => <bdi>{deadLetters ?? 'nowhere else'}</bdi>,
  },
  {
    title: 'Last activity',
    cell: ({ lastActivityAt }) =>
      lastActivityAt ? <Time at={lastActivityAt} /> : <span className="dim">none</span>,
  },
  { title: 'Process', cell: ({ worker }) => <Id id={worker} /> },
]

function LoopStatus({ loop: { running, breaker, problem } }: { loop: Loop }) {
  const now = useNow()
  if (problem !== undefined)
    return (
      <Badge color="red" title={problem}>
        receives nothing
      </Badge>
    )
  if (!running) return <Badge color="gray">stopped</Badge>
  if (breaker !== undefined && breaker.state !== 'closed')
    return (
      <Badge
        color="red"
        title={breaker.until && `The next message runs ${formatRelative(breaker.until, now)}.`}
      >
        breaker {breaker.state}
      </Badge>
    )
  return <Badge color="gray">running</Badge>
}

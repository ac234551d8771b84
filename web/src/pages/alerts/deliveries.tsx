import { useState } from 'react'
import { Badge, Button, Group, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import type { OutputOf } from 'redrive/api'
import { api } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { formatAmount } from '../../format/number.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { showDone, showProblem } from '../../ui/toast.ts'

type Delivery = OutputOf<'listAlertDeliveries'>[number]

/** The notifications that were sent or could not be sent. */
export function Deliveries() {
  const deliveries = useQuery(queries.alertDeliveries())
  return (
    <Panel title="Notifications" padded={false} right={<TestTarget />}>
      <Loaded query={deliveries}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No notification was sent yet">
              Targets (webhook, Slack, PagerDuty, e-mail) are part of the configuration: notify.
            </Empty>
          ) : (
            <DataTable label="Notifications" columns={columns} rows={list} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
    </Panel>
  )
}

const colors = { waiting: 'gray', sending: 'blue', delivered: 'green', failed: 'red' } as const

const columns: Column<Delivery>[] = [
  { title: 'Created', width: 110, cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Target', cell: ({ target }) => <bdi>{target}</bdi> },
  { title: 'State', cell: ({ state }) => <Badge color={colors[state]}>{state}</Badge> },
  {
    title: 'Content',
    cell: ({ changes, isDigest }) =>
      isDigest
        ? `digest of ${formatAmount(changes.length, 'change')}`
        : changes.map(({ state, alert }) => `${state}: ${alert.summary}`).join('; '),
  },
  { title: 'Attempts', align: 'right', cell: ({ attempts }) => attempts },
  { title: 'Last answer', cell: ({ answer }) => <bdi>{answer ?? ''}</bdi> },
]

function TestTarget() {
  const [target, setTarget] = useState('')
  const test = useMutation({
    mutationFn: () => api.testAlertTarget({ target: target.trim() }),
    onSuccess: ({ sent, answer }) =>
      showDone(sent ? `The target accepted the test: ${answer}` : `Not sent: ${answer}`),
    onError: showProblem,
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        test.mutate()
      }}
    >
      <Group gap={8} wrap="nowrap">
        <TextInput
          size="xs"
          aria-label="Name of a target"
          placeholder="Name of a target"
          value={target}
          onChange={({ currentTarget }) => setTarget(currentTarget.value)}
          required
          maxLength={50}
        />
        <Button type="submit" variant="default" loading={test.isPending}>
          Send a test
        </Button>
      </Group>
    </form>
  )
}

import { useState } from 'react'
import { Badge, Button, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { api } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { useCan } from '../../app/session.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Empty } from '../../ui/empty.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Page, Panel } from '../../ui/page.tsx'
import { ReasonDialog } from '../../ui/reason-dialog.tsx'
import { Time } from '../../ui/time.tsx'
import { showProblem } from '../../ui/toast.ts'
import { Deliveries } from './deliveries.tsx'

type Alert = OutputOf<'listAlerts'>[number]
type Change = OutputOf<'listAlertHistory'>[number]

/** What is wrong now, what was wrong, and who was told. */
export function AlertsPage() {
  const can = useCan()
  const alerts = useQuery(queries.alerts())
  const history = useQuery(queries.alertHistory())
  return (
    <Page title="Alerts" description="Rules that watch the store, and what they have found.">
      <Panel title="Raised now" padded={false}>
        <Loaded query={alerts}>
          {(list) =>
            list.length === 0 ? (
              <Empty title="Nothing is wrong">
                No alert is raised. Rules are part of the configuration.
              </Empty>
            ) : (
              <DataTable
                label="Raised alerts"
                columns={raisedColumns}
                rows={list}
                keyOf={({ name }) => name}
              />
            )
          }
        </Loaded>
      </Panel>
      {can('admin') && <Deliveries />}
      <Panel title="History" padded={false}>
        <Loaded query={history}>
          {(list) =>
            list.length === 0 ? (
              <Empty title="No alert was raised yet" />
            ) : (
              <DataTable
                label="History of alerts"
                columns={historyColumns}
                rows={list}
                keyOf={({ id }) => id}
              />
            )
          }
        </Loaded>
      </Panel>
    </Page>
  )
}

function Severity({ severity }: Pick<Alert, 'severity'>) {
  return <Badge color={severity === 'critical' ? 'red' : 'yellow'}>{severity}</Badge>
}

/** What the alert says, with a link to what it is about. */
function AlertText({ alert }: { alert: Alert }) {
  return (
    <>
      <Text size="sm">
        <bdi>{alert.summary}</bdi>
      </Text>
      {alert.title !== undefined && (
        <Text size="sm" c="dimmed" lineClamp={1}>
          <bdi>{alert.title}</bdi>
        </Text>
      )}
      {alert.hint !== undefined && (
        <Text size="sm" c="dimmed">
          {alert.hint}
        </Text>
      )}
    </>
  )
}

function Subject({ alert }: { alert: Alert }) {
  if (alert.group !== undefined)
    return (
      <Link to="/groups/$fingerprint" params={{ fingerprint: alert.group }}>
        Open group
      </Link>
    )
  if (alert.queue !== undefined)
    return (
      <Link to="/queues/$queue" params={{ queue: alert.queue }}>
        <bdi>{alert.queue}</bdi>
      </Link>
    )
  return <span className="dim">all queues</span>
}

const raisedColumns: Column<Alert>[] = [
  { title: 'Severity', width: 110, cell: (alert) => <Severity severity={alert.severity} /> },
  { title: 'Alert', cell: (alert) => <AlertText alert={alert} /> },
  { title: 'About', cell: (alert) => <Subject alert={alert} /> },
  { title: 'Raised', width: 110, cell: ({ raisedAt }) => <Time at={raisedAt} /> },
  {
    title: '',
    label: 'Acknowledged',
    align: 'right',
    width: 170,
    cell: (alert) => <Acknowledge alert={alert} />,
  },
]

const historyColumns: Column<Change>[] = [
  { title: 'When', width: 110, cell: ({ at }) => <Time at={at} /> },
  { title: 'Change', width: 90, cell: ({ state }) => state },
  { title: 'Severity', width: 110, cell: ({ alert }) => <Severity severity={alert.severity} /> },
  { title: 'Alert', cell: ({ alert }) => <bdi>{alert.summary}</bdi> },
  { title: 'About', cell: ({ alert }) => <Subject alert={alert} /> },
]

function Acknowledge({ alert: { name, acknowledged } }: { alert: Alert }) {
  const can = useCan()
  const queryClient = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const acknowledge = useMutation({
    mutationFn: (note: string) => api.acknowledgeAlert({ name, ...(note === '' ? {} : { note }) }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['alerts'] }),
    onError: showProblem,
  })
  if (acknowledged)
    return (
      <span title={acknowledged.note}>
        <bdi>{acknowledged.by}</bdi>, <Time at={acknowledged.at} />
      </span>
    )
  if (!can('letter:retry')) return null
  return (
    <>
      <Button
        variant="default"
        loading={acknowledge.isPending}
        onClick={() => setAsking(true)}
        title="Ends the reminders until the alert clears. Others see that you take care of it."
        aria-label={`Acknowledge ${name}`}
      >
        Acknowledge
      </Button>
      {isAsking && (
        <ReasonDialog
          title="Acknowledge the alert"
          explanation="The alert stays raised, but nobody is reminded of it until it clears and comes back."
          action="Acknowledge"
          label="Note (optional)"
          required={false}
          onClose={() => setAsking(false)}
          onConfirm={(note) => {
            setAsking(false)
            acknowledge.mutate(note)
          }}
        />
      )}
    </>
  )
}

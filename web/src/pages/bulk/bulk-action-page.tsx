import { useState } from 'react'
import { Button, Tooltip } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { BulkActionView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useCan } from '../../app/session.tsx'
import { formatAmount } from '../../format/number.ts'
import { FilterChips } from '../../ui/filter-chips.tsx'
import { Id } from '../../ui/id.tsx'
import { Loaded } from '../../ui/loading.tsx'
import { Columns, Page, Panel } from '../../ui/page.tsx'
import { Time, Timestamp } from '../../ui/time.tsx'
import { ApprovalNote, BulkControls } from './bulk-controls.tsx'
import { BulkDrawer } from './bulk-drawer.tsx'
import { actionMeanings, actionTitle, type BulkRequest } from './bulk-request.ts'
import { BulkResults } from './bulk-results.tsx'
import { BulkStateBadge } from './bulk-state.tsx'
import classes from './bulk.module.css'
import { Fact, InputFacts, LimitFacts } from './facts.tsx'
import { PlanSummary } from './plan-summary.tsx'
import { ProgressPanel } from './progress-panel.tsx'

const route = getRouteApi('/signed-in/bulk-actions/$id')

/** One bulk action: its plan, its limits, its approval, its progress and its results. */
export function BulkActionPage() {
  const { id } = route.useParams()
  const query = useQuery(queries.bulkAction(id))
  return (
    <Loaded query={query}>{(action) => <ActionDetail key={action.id} action={action} />}</Loaded>
  )
}

function ActionDetail({ action }: { action: BulkActionView }) {
  const { outcome = [] } = route.useSearch()
  const navigate = useNavigate()
  return (
    <Page
      title={actionTitle(action.action, action.count)}
      description={actionMeanings[action.action]}
      actions={
        <>
          <UndoButton action={action} />
          <BulkControls action={action} />
        </>
      }
    >
      <ApprovalNote action={action} />
      <Columns>
        <Panel title="Progress" right={<BulkStateBadge action={action} />}>
          <ProgressPanel action={action} />
        </Panel>
        <Panel title="Plan" right={<Id id={action.id} />}>
          <Facts action={action} />
        </Panel>
      </Columns>
      {action.state === 'planned' ? (
        <Panel title="Letters">
          <PlanSummary plan={action} />
        </Panel>
      ) : (
        <BulkResults
          action={action}
          outcome={outcome}
          onOutcome={(next) =>
            void navigate({
              to: '/bulk-actions/$id',
              params: { id: action.id },
              search: next.length > 0 ? { outcome: next } : {},
              replace: true,
            })
          }
        />
      )}
    </Page>
  )
}

/** An edit can be undone when it has changed letters. */
function UndoButton({ action }: { action: BulkActionView }) {
  const can = useCan()
  const [request, setRequest] = useState<BulkRequest>()
  const { id, filter, progress, state } = action
  const isOver = state === 'finished' || state === 'cancelled' || state === 'stopped'
  if (action.action !== 'edit' || !isOver || progress.succeeded === 0 || !can('payload:edit'))
    return null
  return (
    <>
      <Tooltip label="Plans to restore the payloads that this edit has changed.">
        <Button
          variant="default"
          onClick={() => setRequest({ action: 'undo', undoes: id, filter })}
        >
          Undo this edit
        </Button>
      </Tooltip>
      <BulkDrawer request={request} onClose={() => setRequest(undefined)} />
    </>
  )
}

function Facts({ action }: { action: BulkActionView }) {
  const { by, reason, filter, plannedAt, startedAt, endedAt, expiresAt, ineligible } = action
  return (
    <dl className={classes.facts}>
      <Fact name="Letters">
        <FilterChips filter={filter} />
      </Fact>
      <Fact name="Not eligible">{formatAmount(ineligible.count, 'letter')}</Fact>
      <InputFacts action={action} />
      <LimitFacts limits={action.limits} count={action.count} />
      <Fact name="Planned by">
        <bdi>{by}</bdi> <Time at={plannedAt} />
      </Fact>
      <Fact name="Reason">
        {reason === undefined ? <span className="dim">none given</span> : <bdi>{reason}</bdi>}
      </Fact>
      {action.approval?.by !== undefined && (
        <Fact name="Approved by">
          <bdi>{action.approval.by}</bdi>{' '}
          {action.approval.at !== undefined && <Time at={action.approval.at} />}
        </Fact>
      )}
      {startedAt === undefined ? (
        <Fact name="Expires">
          <Time at={expiresAt} />
        </Fact>
      ) : (
        <Fact name="Started">
          <Timestamp at={startedAt} />
        </Fact>
      )}
      {endedAt !== undefined && (
        <Fact name="Ended">
          <Timestamp at={endedAt} />
        </Fact>
      )}
    </dl>
  )
}

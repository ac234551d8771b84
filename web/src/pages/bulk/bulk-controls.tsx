import { Alert, Anchor, Button, Group, Stack, Text, Tooltip } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { permissionOfAction, type BulkActionView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { useNow } from '../../app/preferences.tsx'
import { useCaller, useCan } from '../../app/session.tsx'
import { formatAmount, formatCount } from '../../format/number.ts'
import { ConfirmButton } from '../../ui/confirm-button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Time } from '../../ui/time.tsx'
import { showProblem } from '../../ui/toast.ts'
import { actionTitle } from './bulk-request.ts'

const calls = {
  run: api.runBulkAction,
  approve: api.approveBulkAction,
  pause: api.pauseBulkAction,
  resume: api.resumeBulkAction,
  cancel: api.cancelBulkAction,
}
type Change = keyof typeof calls

/** Changes a bulk action. The page shows the answer at once. */
function useChange(id: string) {
  const queryClient = useQueryClient()
  return useMutation({
    mutationFn: (change: Change) => calls[change]({ id }),
    onSuccess: (action) => queryClient.setQueryData(queries.bulkAction(id).queryKey, action),
    onError: showProblem,
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['bulk-actions'] }),
  })
}

/** Whether a second person has to agree before the plan can run. */
export function awaitsApproval({ state, approval }: BulkActionView): boolean {
  return state === 'planned' && approval !== undefined && approval.by === undefined
}

export function useIsExpired({ state, expiresAt }: BulkActionView): boolean {
  return useNow() > Date.parse(expiresAt) && state === 'planned'
}

/** Run, pause, resume and cancel: whatever the state allows. */
export function BulkControls({ action }: { action: BulkActionView }) {
  const can = useCan()
  const change = useChange(action.id)
  const isExpired = useIsExpired(action)
  const { state, count, progress } = action
  if (!can(permissionOfAction[action.action])) return null
  const left = formatAmount(progress.pending, 'letter')
  const busy = { loading: change.isPending }
  return (
    <Group gap={8}>
      {state === 'planned' && !isExpired && (
        <Tooltip
          label={
            awaitsApproval(action)
              ? 'Another person has to approve the plan first.'
              : 'Starts the action. Workers on the store run it.'
          }
        >
          <Button
            {...busy}
            disabled={awaitsApproval(action) || count === 0}
            {...(action.action === 'remove' ? { color: 'red' } : {})}
            onClick={() => change.mutate('run')}
          >
            {actionTitle(action.action, count)}
          </Button>
        </Tooltip>
      )}
      {state === 'running' && (
        <Tooltip label="Acts on no further letters until the action is resumed.">
          <Button variant="default" {...busy} onClick={() => change.mutate('pause')}>
            Pause
          </Button>
        </Tooltip>
      )}
      {(state === 'paused' || state === 'stopped') && (
        <Tooltip label={`Continues with the ${left} that are left.`}>
          <Button {...busy} onClick={() => change.mutate('resume')}>
            Resume
          </Button>
        </Tooltip>
      )}
      {['running', 'paused', 'stopped'].includes(state) && (
        <ConfirmButton
          label="Cancel the rest"
          question="What is done stays done."
          confirm={`Leave out the other ${formatCount(progress.pending)}`}
          onConfirm={() => change.mutate('cancel')}
        />
      )}
    </Group>
  )
}

/** Who has to approve a plan, or who has done so. */
export function ApprovalNote({ action }: { action: BulkActionView }) {
  const caller = useCaller()
  const can = useCan()
  const change = useChange(action.id)
  const isExpired = useIsExpired(action)
  const { approval, by } = action
  if (!approval) return null
  if (approval.by !== undefined)
    return (
      <Text size="sm">
        Approved by <bdi>{approval.by}</bdi>{' '}
        {approval.at !== undefined && <Time at={approval.at} />}
      </Text>
    )
  if (!awaitsApproval(action) || isExpired) return null
  const permission = permissionOfAction[action.action]
  const mayApprove = can(permission) && caller !== undefined && caller.name !== by
  return (
    <Alert title="Another person has to approve this plan" color="yellow" variant="light">
      <Stack gap={8} align="flex-start">
        <Text size="sm">
          It has more than {formatAmount(approval.above, 'letter')}. Everybody with the permission{' '}
          {permission} except <bdi>{by}</bdi> may approve it, until it expires{' '}
          <Time at={action.expiresAt} />.
        </Text>
        {mayApprove ? (
          <Button loading={change.isPending} onClick={() => change.mutate('approve')}>
            Approve: {actionTitle(action.action, action.count)}
          </Button>
        ) : (
          <Group gap={8}>
            <Anchor component={Link} to={`/bulk-actions/${action.id}`} size="sm">
              Open the plan
            </Anchor>
            <CopyButton
              text={`${location.origin}/bulk-actions/${action.id}`}
              label="Copy the link for the approver"
            />
          </Group>
        )}
      </Stack>
    </Alert>
  )
}

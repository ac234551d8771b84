import { useCallback, useEffect, useRef, useState } from 'react'
import { Alert, Anchor, Button, Stack, Stepper, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ProblemError, type BulkActionView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { FilterChips } from '../../ui/filter-chips.tsx'
import { SkeletonRows } from '../../ui/loading.tsx'
import { Problem } from '../../ui/problem.tsx'
import { ActionInput } from './action-input.tsx'
import { ApprovalNote, awaitsApproval, BulkControls } from './bulk-controls.tsx'
import {
  actionMeanings,
  actionTitle,
  needsInput,
  needsReason,
  type BulkRequest,
} from './bulk-request.ts'
import classes from './bulk.module.css'
import { InputFacts, LimitFacts } from './facts.tsx'
import { LimitsFields } from './limits-fields.tsx'
import { emptyForm, isHalfWindow, planCall, whyNotReady, type PlanForm } from './plan-form.ts'
import { PlanSummary } from './plan-summary.tsx'
import { ProgressPanel } from './progress-panel.tsx'

const steps = ['Plan', 'Limits', 'Run'] as const

interface FlowProps {
  request: BulkRequest
  onClose: () => void
}

/** The steps of a bulk action: plan, limits, run. Closed before the last one, it drops its plan. */
export function BulkFlow({ request, onClose }: FlowProps) {
  const [step, setStep] = useState(0)
  const [form, setForm] = useState(emptyForm)
  const { plan, make, isCurrent, error, isPending } = usePlan(request, form, step < 2)
  const change = useCallback(
    (part: Partial<PlanForm>) => setForm((before) => ({ ...before, ...part })),
    [],
  )
  const isAsked = needsInput(request.action) || needsReason(request.action)
  const isOpened = useRef(false)
  useEffect(() => {
    // Only when the drawer opens: later plans are made by the buttons.
    if (isOpened.current || isAsked) return
    isOpened.current = true
    void make()
  }, [isAsked, make])
  const toRun = async (): Promise<void> => {
    if (isCurrent || (await make())) setStep(2)
  }
  const { data: action = plan } = useQuery({
    ...queries.bulkAction(plan?.id ?? ''),
    enabled: plan !== undefined && step === 2,
  })
  const isStarted = action !== undefined && action.state !== 'planned'
  const toStep = (index: number): void => {
    if (index < step && !isStarted) setStep(index)
  }
  return (
    <Stack gap={16}>
      <Stepper active={step} size="xs" iconSize={24} onStepClick={toStep}>
        {steps.map((label) => (
          <Stepper.Step key={label} label={label} />
        ))}
      </Stepper>
      {step === 0 && (
        <PlanStep
          {...{ request, form, change, plan, make, isCurrent, error, isPending, isAsked }}
          onNext={() => setStep(1)}
        />
      )}
      {step === 1 && (
        <>
          <LimitsFields action={request.action} form={form} onChange={change} />
          {error && <PlanProblem error={error} />}
          <div className={classes.footer}>
            <Button variant="default" onClick={() => setStep(0)}>
              Back
            </Button>
            <Button loading={isPending} disabled={isHalfWindow(form)} onClick={() => void toRun()}>
              Continue
            </Button>
          </div>
        </>
      )}
      {step === 2 && action && <RunStep action={action} onClose={onClose} />}
    </Stack>
  )
}

/**
 * The plan of what the form says. A plan that another one replaces is cancelled; with
 * `dropsOnClose`, also one that is there, or arrives, when the drawer is closed.
 */
function usePlan(request: BulkRequest, form: PlanForm, dropsOnClose: boolean) {
  const queryClient = useQueryClient()
  const [made, setMade] = useState<{ plan: BulkActionView; key: string }>()
  const isClosed = useRef(false)
  const ready = whyNotReady(request.action, form) === undefined
  const key = ready ? JSON.stringify(planCall(request, form)) : ''
  const { mutateAsync, error, isPending } = useMutation({
    mutationFn: async () => {
      const call = planCall(request, form)
      const plan =
        call.name === 'planBulkUndo'
          ? await api.planBulkUndo(call.input)
          : await api.planBulkAction(call.input)
      if (made) await dropPlan(made.plan.id)
      if (isClosed.current) await dropPlan(plan.id)
      return plan
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['bulk-actions', 'list'] }),
  })
  const toDrop = useRef<string>(undefined)
  useEffect(() => {
    toDrop.current = dropsOnClose ? made?.plan.id : undefined
  }, [dropsOnClose, made])
  useEffect(() => {
    isClosed.current = false
    return () => {
      isClosed.current = true
      if (toDrop.current === undefined) return
      void dropPlan(toDrop.current).then(() =>
        queryClient.invalidateQueries({ queryKey: ['bulk-actions', 'list'] }),
      )
    }
  }, [queryClient])
  const make = async (): Promise<boolean> => {
    try {
      setMade({ plan: await mutateAsync(), key })
      return true
    } catch {
      return false
    }
  }
  return {
    plan: made?.plan,
    make,
    isCurrent: made?.key === key,
    error: error ?? undefined,
    isPending,
  }
}

/** Cancels a plan that nobody will run. If that fails, the plan expires by itself. */
async function dropPlan(id: string): Promise<void> {
  await api.cancelBulkAction({ id }).catch(() => {})
}

interface PlanStepProps {
  request: BulkRequest
  form: PlanForm
  change: (part: Partial<PlanForm>) => void
  plan: BulkActionView | undefined
  make: () => Promise<boolean>
  isCurrent: boolean
  error: Error | undefined
  isPending: boolean
  isAsked: boolean
  onNext: () => void
}

function PlanStep(props: PlanStepProps) {
  const { request, form, change, plan, make, isCurrent, error, isPending, isAsked, onNext } = props
  const missing =
    whyNotReady(request.action, form) ??
    (needsReason(request.action) && form.reason.trim() === '' ? 'Enter a reason.' : undefined)
  const mustPlan = !plan || !isCurrent
  return (
    <>
      <Text size="sm">{actionMeanings[request.action]}</Text>
      <FilterChips filter={request.filter} />
      {isAsked && <ActionInput action={request.action} form={form} onChange={change} />}
      {error && <PlanProblem error={error} {...(isAsked ? {} : { onRetry: () => void make() })} />}
      {isPending && !plan ? <SkeletonRows rows={8} /> : plan && <PlanSummary plan={plan} />}
      <div className={classes.footer}>
        {isAsked && mustPlan && (
          <>
            {missing !== undefined && (
              <Text size="xs" c="dimmed">
                {missing}
              </Text>
            )}
            <Button
              loading={isPending}
              disabled={missing !== undefined}
              onClick={() => void make()}
            >
              {plan ? 'Plan again' : 'Show what would happen'}
            </Button>
          </>
        )}
        {plan && (!isAsked || isCurrent) && (
          <Button disabled={plan.count === 0} onClick={onNext}>
            {plan.count === 0 ? 'No letter is eligible' : 'Next: limits'}
          </Button>
        )}
      </div>
    </>
  )
}

/** Why there is no plan: mostly, no letter can be part of it. */
function PlanProblem({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  if (!(error instanceof ProblemError) || error.problem.status !== 400)
    return <Problem error={error} {...(onRetry ? { onRetry } : {})} />
  return (
    <Alert color="red" variant="light" title="There is nothing to run" role="alert">
      <bdi className="wrap">{error.problem.detail}</bdi>
    </Alert>
  )
}

/** The plan as it will run, and then its progress. */
function RunStep({ action, onClose }: { action: BulkActionView; onClose: () => void }) {
  const isPlanned = action.state === 'planned'
  return (
    <>
      {isPlanned ? (
        <>
          <PlanSummary plan={action} />
          <dl className={classes.facts}>
            <InputFacts action={action} />
            <LimitFacts limits={action.limits} count={action.count} />
          </dl>
          <ApprovalNote action={action} />
        </>
      ) : (
        <ProgressPanel action={action} />
      )}
      <Text size="sm">
        <Anchor component={Link} to={`/bulk-actions/${action.id}`} size="sm">
          Open the page of this action
        </Anchor>
        {isPlanned
          ? ': the plan waits there too.'
          : ': it runs on, also when this drawer is closed.'}
      </Text>
      <div className={classes.footer}>
        <Button variant="default" onClick={onClose}>
          {isPlanned && !awaitsApproval(action) ? 'Not now' : 'Close'}
        </Button>
        <BulkControls action={action} />
      </div>
      <span className="sr-only" role="status">
        {isPlanned ? `Ready: ${actionTitle(action.action, action.count)}` : action.state}
      </span>
    </>
  )
}

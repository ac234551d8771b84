import { Fragment } from 'react'
import { Stack, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { BulkActionView } from 'redrive/api'
import { formatAmount, formatCount } from '../../format/number.ts'
import { firstLine } from '../../format/text.ts'
import { StateBadge, stateNames } from '../../ui/state.tsx'
import { actionTitle } from './bulk-request.ts'
import classes from './bulk.module.css'
import { EditPreview } from './edit-preview.tsx'

const sampleSize = 5
const maxQueues = 5
const maxReasons = 10

/** Which letters a plan has, and which it leaves out. */
export function PlanSummary({ plan }: { plan: BulkActionView }) {
  const { action, count, sample, ineligible, preview } = plan
  return (
    <Stack gap={16}>
      <div>
        <div className={classes.number}>{actionTitle(action, count)}</div>
        <CountsLine plan={plan} />
      </div>
      {sample.length > 0 && (
        <section aria-label="Sample">
          <Title order={3}>{count > sampleSize ? `${sampleSize} of them` : 'These letters'}</Title>
          <div className={classes.sample}>
            {sample.slice(0, sampleSize).map((letter) => (
              <Fragment key={letter.id}>
                <StateBadge state={letter.state} />
                <bdi className="line">{letter.queue.slice(0, 200)}</bdi>
                <Link to="/letters/$id" params={{ id: letter.id }} className="plain line">
                  <bdi>{failureLine(letter.failure, plan)}</bdi>
                </Link>
              </Fragment>
            ))}
          </div>
        </section>
      )}
      {preview !== undefined && preview.length > 0 && (
        <section aria-label="Changes">
          <Title order={3}>What changes</Title>
          <EditPreview preview={preview} />
        </section>
      )}
      <NotEligible ineligible={ineligible} />
    </Stack>
  )
}

function failureLine(failure: string, { hidden }: BulkActionView): string {
  return hidden && failure === '' ? 'message hidden' : firstLine(failure).slice(0, 300)
}

function CountsLine({ plan: { states, queues } }: { plan: BulkActionView }) {
  const names = Object.keys(queues).sort((one, other) => queues[other]! - queues[one]!)
  return (
    <Text size="sm" c="dimmed" className="wrap">
      {stateNames
        .filter((state) => states[state])
        .map((state) => `${formatCount(states[state]!)} ${state}`)
        .join(', ')}
      {names.length > 0 && ' in '}
      {names.slice(0, maxQueues).map((queue, index) => (
        <Fragment key={queue}>
          {index > 0 && ', '}
          <bdi>{queue.slice(0, 100)}</bdi>
          {names.length > 1 && ` (${formatCount(queues[queue]!)})`}
        </Fragment>
      ))}
      {names.length > maxQueues && ` and ${formatAmount(names.length - maxQueues, 'more queue')}`}
    </Text>
  )
}

function NotEligible({ ineligible }: Pick<BulkActionView, 'ineligible'>) {
  if (ineligible.count === 0) return null
  const reasons = Object.entries(ineligible.reasons).sort(([, one], [, other]) => other - one)
  return (
    <section aria-label="Not eligible">
      <Title order={3}>{formatAmount(ineligible.count, 'letter')} not eligible</Title>
      <Text size="sm" c="dimmed">
        They match the filter, and stay as they are.
      </Text>
      <dl className={classes.reasons}>
        {reasons.slice(0, maxReasons).map(([reason, count]) => (
          <Fragment key={reason}>
            <dt>{formatCount(count)}</dt>
            <dd>
              <bdi>{reason.slice(0, 300)}</bdi>
            </dd>
          </Fragment>
        ))}
      </dl>
    </section>
  )
}

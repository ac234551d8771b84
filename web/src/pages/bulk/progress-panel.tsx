import { Fragment, useState } from 'react'
import { Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { BulkActionView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useNow } from '../../app/preferences.tsx'
import { formatAmount, formatCount, formatShare } from '../../format/number.ts'
import {
  addSample,
  countCauses,
  countDone,
  formatRate,
  rateOf,
  remainingMs,
  type ProgressSample,
} from '../../format/progress.ts'
import { firstLine } from '../../format/text.ts'
import { formatDuration } from '../../format/time.ts'
import classes from './bulk.module.css'
import { ProgressBar, progressText } from './progress-bar.tsx'

/** How far a bulk action has come, how fast it is, and why letters fail. */
export function ProgressPanel({ action }: { action: BulkActionView }) {
  const { progress, count, stopReason, problem } = action
  const done = countDone(progress)
  return (
    <Stack gap={8}>
      <div className={classes.number}>
        {formatCount(done)} of {formatAmount(count, 'letter')}
        {count > 0 && <span className="dim"> · {formatShare(done / count)}</span>}
      </div>
      <ProgressBar action={action} />
      <Text size="sm" role="status">
        {progressText(progress)}
      </Text>
      <Speed action={action} />
      {stopReason !== undefined && (
        <Text size="sm" role="alert" className="wrap">
          Stopped: {stopReason}
        </Text>
      )}
      {problem !== undefined && (
        <Text size="sm" role="alert" className="wrap">
          No progress at present: {problem}
        </Text>
      )}
      {progress.failed > 0 && <Causes action={action} />}
    </Stack>
  )
}

interface Samples {
  /** The action and its state: a pause is not slowness. */
  key: string
  samples: readonly ProgressSample[]
}

/** Samples of the progress while the page is open. */
function useRate({ id, progress, state }: BulkActionView): number | undefined {
  const done = countDone(progress)
  const now = useNow()
  const key = `${id} ${state}`
  const [known, setKnown] = useState<Samples>({ key, samples: [] })
  const samples = known.key === key ? known.samples : []
  if (state === 'running' && (samples.at(-1)?.atMs ?? 0) < now)
    setKnown({ key, samples: addSample(samples, { atMs: now, done }) })
  return rateOf(samples)
}

function Speed({ action }: { action: BulkActionView }) {
  const { progress, state, startedAt, endedAt } = action
  const measured = useRate(action)
  const now = useNow()
  if (startedAt === undefined) return null
  const tookMs = (endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt)
  if (state !== 'running')
    return (
      <Text size="sm" c="dimmed">
        {endedAt === undefined
          ? `Started ${formatDuration(tookMs)} ago, ${state} now.`
          : `It took ${formatDuration(tookMs)}.`}
      </Text>
    )
  const rate = measured ?? (tookMs > 0 ? (countDone(progress) * 1000) / tookMs : undefined)
  const left = remainingMs(progress.pending + progress.waiting, rate)
  return (
    <Text size="sm" c="dimmed" className="numbers">
      {rate === undefined ? 'Starting.' : formatRate(rate)}
      {left !== undefined && `, about ${formatDuration(left)} left`}
    </Text>
  )
}

const maxCauses = 10

function Causes({ action: { id, progress } }: { action: BulkActionView }) {
  const { data } = useQuery(queries.bulkFailures(id))
  if (!data) return null
  const causes = countCauses(data.items.map(({ error, hidden }) => textOf(error, hidden)))
  return (
    <section aria-label="Failures by cause">
      <Title order={3}>Failures by cause</Title>
      {data.items.length < progress.failed && (
        <Text size="xs" c="dimmed">
          Of the first {formatCount(data.items.length)} that failed.
        </Text>
      )}
      <dl className={classes.reasons}>
        {causes.slice(0, maxCauses).map(({ cause, count }) => (
          <Fragment key={cause}>
            <dt>{formatCount(count)}</dt>
            <dd>
              <bdi>{cause}</bdi>
            </dd>
          </Fragment>
        ))}
      </dl>
    </section>
  )
}

function textOf(error: string | undefined, hidden: boolean | undefined): string {
  if (error !== undefined) return firstLine(error).slice(0, 300)
  return hidden ? 'Message hidden: it needs the permission payload:read' : 'No message'
}

import type { ReactNode } from 'react'
import { SimpleGrid, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatCount, formatShare } from '../../format/number.ts'
import { Age } from '../../ui/time.tsx'
import type { State } from '../../ui/state.tsx'
import { openStates, StateIcon } from '../../ui/state.tsx'
import classes from './summary.module.css'

type Queue = OutputOf<'listQueues'>['items'][number]

/** The numbers that somebody asks for first. */
export function Summary() {
  const { data: queues, isError } = useQuery(queries.queues())
  const success = useResolvedShare()
  const items = queues?.items
  const status = items ? 'ready' : isError ? 'failed' : 'loading'
  const total = (state: State): number =>
    (items ?? []).reduce((sum, { states }) => sum + states[state], 0)
  const oldest = items && oldestOf(items)
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing={16}>
      <Figure title="Open" status={status} search={{ state: [...openStates] }}>
        {formatCount(openStates.reduce((sum, state) => sum + total(state), 0))}
      </Figure>
      <Figure title="Exhausted" icon="exhausted" status={status} search={{ state: ['exhausted'] }}>
        {formatCount(total('exhausted'))}
      </Figure>
      <Figure title="Parked" icon="parked" status={status} search={{ state: ['parked'] }}>
        {formatCount(total('parked'))}
      </Figure>
      <Figure
        title="Oldest open"
        status={status}
        search={{ state: [...openStates], order: 'oldest' }}
      >
        {oldest === undefined ? 'none' : <Age since={oldest} />}
      </Figure>
      <Figure title="Success rate, 24 h" status={success.status}>
        {success.share === undefined ? 'no runs' : formatShare(success.share)}
      </Figure>
    </SimpleGrid>
  )
}

type Status = 'loading' | 'failed' | 'ready'

/** Share of the runs of the last 24 hours that resolved their letter, if there were runs. */
function useResolvedShare(): { status: Status; share?: number } {
  const resolved = useQuery(queries.series({ metric: 'resolved', step: '1h' }))
  const failed = useQuery(queries.series({ metric: 'failed', step: '1h' }))
  if (!resolved.data || !failed.data)
    return { status: resolved.isError || failed.isError ? 'failed' : 'loading' }
  const sum = ({ lines }: OutputOf<'getSeries'>): number =>
    lines.flatMap(({ values }) => values).reduce<number>((all, value) => all + (value ?? 0), 0)
  const [good, bad] = [sum(resolved.data), sum(failed.data)]
  return { status: 'ready', ...(good + bad > 0 && { share: good / (good + bad) }) }
}

function oldestOf(queues: readonly Queue[]): string | undefined {
  return queues
    .flatMap(({ oldest }) => (oldest ? [oldest.at] : []))
    .reduce<string | undefined>(
      (first, at) => (first === undefined || at < first ? at : first),
      undefined,
    )
}

function Figure({
  title,
  icon,
  status,
  search,
  children,
}: {
  title: string
  icon?: State
  /** `failed`: a panel below shows the error and can read again. */
  status: Status
  /** The letters that the number counts. */
  search?: { state: State[]; order?: 'oldest' }
  children: ReactNode
}) {
  const content = (
    <>
      <span className={classes.title}>
        {icon && <StateIcon state={icon} />}
        {title}
      </span>
      <span className={classes.value}>
        {status === 'loading' && <Skeleton height={24} w={72} />}
        {status === 'failed' && <span className="dim">unknown</span>}
        {status === 'ready' && children}
      </span>
    </>
  )
  if (!search) return <div className={classes.figure}>{content}</div>
  return (
    <Link to="/letters" search={search} className={classes.figure}>
      {content}
    </Link>
  )
}

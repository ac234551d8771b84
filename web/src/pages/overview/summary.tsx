import type { ReactNode } from 'react'
import { SimpleGrid, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatCount, formatShare } from '../../format/number.ts'
import { Age } from '../../ui/time.tsx'
import type { State } from '../../ui/state.tsx'
import { StateIcon } from '../../ui/state.tsx'
import classes from './summary.module.css'

type Queue = OutputOf<'listQueues'>['items'][number]

const openStates = ['pending', 'retrying', 'exhausted', 'parked'] as const

/** The numbers that somebody asks for first. */
export function Summary() {
  const { data: queues } = useQuery(queries.queues())
  const resolved = useResolvedShare()
  const items = queues?.items
  const total = (state: State): number =>
    (items ?? []).reduce((sum, { states }) => sum + states[state], 0)
  const oldest = items && oldestOf(items)
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing={16}>
      <Figure title="Open" isLoading={!items} search={{ state: [...openStates] }}>
        {formatCount(openStates.reduce((sum, state) => sum + total(state), 0))}
      </Figure>
      <Figure
        title="Exhausted"
        icon="exhausted"
        isLoading={!items}
        search={{ state: ['exhausted'] }}
      >
        {formatCount(total('exhausted'))}
      </Figure>
      <Figure title="Parked" icon="parked" isLoading={!items} search={{ state: ['parked'] }}>
        {formatCount(total('parked'))}
      </Figure>
      <Figure
        title="Oldest open"
        isLoading={!items}
        search={{ state: [...openStates], order: 'oldest' }}
      >
        {oldest === undefined ? 'none' : <Age since={oldest} />}
      </Figure>
      <Figure title="Success rate, 24 h" isLoading={resolved === undefined}>
        {typeof resolved === 'number' ? formatShare(resolved) : 'no runs'}
      </Figure>
    </SimpleGrid>
  )
}

/** Share of the runs of the last 24 hours that resolved their letter. Null: there were none. */
function useResolvedShare(): number | null | undefined {
  const { data: resolved } = useQuery(queries.series({ metric: 'resolved', step: '1h' }))
  const { data: failed } = useQuery(queries.series({ metric: 'failed', step: '1h' }))
  if (!resolved || !failed) return undefined
  const sum = ({ lines }: OutputOf<'getSeries'>): number =>
    lines.flatMap(({ values }) => values).reduce<number>((all, value) => all + (value ?? 0), 0)
  const [good, bad] = [sum(resolved), sum(failed)]
  return good + bad === 0 ? null : good / (good + bad)
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
  isLoading,
  search,
  children,
}: {
  title: string
  icon?: State
  isLoading: boolean
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
        {isLoading ? <Skeleton height={24} w={72} /> : children}
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

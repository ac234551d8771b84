import { useEffect, useMemo, useRef } from 'react'
import { Button, Group, Text } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { outcomes, type BulkActionView, type BulkResultView } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { formatCount } from '../../format/number.ts'
import { firstLine, shortenId } from '../../format/text.ts'
import { Loaded } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { StateIcon, type State } from '../../ui/state.tsx'
import classes from './bulk.module.css'

type Outcome = BulkResultView['outcome']

const icons: Record<Outcome, State> = {
  pending: 'pending',
  waiting: 'retrying',
  succeeded: 'resolved',
  failed: 'exhausted',
  skipped: 'archived',
  indeterminate: 'parked',
}

/** While an action runs, short lists of results are read again at this pace. */
const refreshMs = 3000
const rowHeight = 32
const aheadRows = 200

/** What the action did to each letter. */
export function BulkResults({
  action,
  outcome,
  onOutcome,
}: {
  action: BulkActionView
  outcome: readonly Outcome[]
  onOutcome: (outcome: Outcome[]) => void
}) {
  const options = queries.bulkResults({
    id: action.id,
    ...(outcome.length > 0 ? { outcome: [...outcome] } : {}),
  })
  const query = useInfiniteQuery({
    ...options,
    refetchInterval: ({ state: { data } }) =>
      action.state === 'running' && (data?.pages.length ?? 0) < 2 ? refreshMs : false,
  })
  const { refetch } = query
  useEffect(() => {
    // The outcomes of the end.
    if (action.endedAt !== undefined) void refetch()
  }, [action.endedAt, refetch])
  const toggle = (one: Outcome): void =>
    onOutcome(outcome.includes(one) ? outcome.filter((other) => other !== one) : [...outcome, one])
  return (
    <Panel
      title="Results"
      padded={false}
      right={
        <Group gap={4} role="group" aria-label="Outcome">
          {outcomes
            .filter((one) => action.progress[one] > 0 || outcome.includes(one))
            .map((one) => (
              <Button
                key={one}
                variant={outcome.includes(one) ? 'light' : 'subtle'}
                color={outcome.includes(one) ? 'accent' : 'gray'}
                px={8}
                aria-pressed={outcome.includes(one)}
                onClick={() => toggle(one)}
              >
                {one} {formatCount(action.progress[one])}
              </Button>
            ))}
        </Group>
      }
    >
      <Loaded query={query}>
        {({ pages }) => (
          <>
            <ResultList
              pages={pages}
              next={
                query.hasNextPage && !query.isFetchingNextPage && !query.isFetchNextPageError
                  ? query.fetchNextPage
                  : undefined
              }
            />
            {query.isFetchNextPageError && (
              <Problem error={query.error} onRetry={() => void query.fetchNextPage()} />
            )}
          </>
        )}
      </Loaded>
    </Panel>
  )
}

function ResultList({
  pages,
  next,
}: {
  pages: readonly { items: readonly BulkResultView[] }[]
  next: (() => Promise<unknown>) | undefined
}) {
  const results = useMemo(() => pages.flatMap(({ items }) => items), [pages])
  const scroller = useRef<HTMLDivElement>(null)
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useVirtualizer({
    count: results.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 20,
  })
  const items = virtualizer.getVirtualItems()
  const isNear = (items.at(-1)?.index ?? 0) >= results.length - aheadRows
  useEffect(() => {
    if (isNear && next) void next()
  }, [isNear, next])
  if (results.length === 0)
    return (
      <Text size="sm" c="dimmed" p={16}>
        No letter has this outcome.
      </Text>
    )
  return (
    // A list that scrolls has to take the focus, so that keys can scroll it.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div ref={scroller} className={classes.results} tabIndex={0} role="list" aria-label="Results">
      <div role="presentation" style={{ height: virtualizer.getTotalSize() }}>
        {items.map(({ index, start }) => (
          <ResultRow key={results[index]!.id} result={results[index]!} top={start} />
        ))}
      </div>
    </div>
  )
}

function ResultRow({ result, top }: { result: BulkResultView; top: number }) {
  const { id, outcome, runs, error, hidden } = result
  return (
    <div role="listitem" className={classes.result} style={{ transform: `translateY(${top}px)` }}>
      <Link to="/letters/$id" params={{ id }} className="plain mono" title={`Open letter ${id}`}>
        {shortenId(id)}
      </Link>
      <span className={classes.outcome}>
        <StateIcon state={icons[outcome]} />
        {outcome}
      </span>
      <span className="line" title={error?.slice(0, 1000)}>
        <bdi>{error === undefined ? '' : firstLine(error).slice(0, 300)}</bdi>
        {error === undefined && hidden && outcome === 'failed' && (
          <span className="dim">message hidden</span>
        )}
        {runs !== undefined && runs > 1 && (
          <span className="dim"> ran {formatCount(runs)} times</span>
        )}
      </span>
    </div>
  )
}

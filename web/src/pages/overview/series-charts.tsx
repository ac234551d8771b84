import { useMemo } from 'react'
import { useQuery } from '@tanstack/react-query'
import type { OutputOf } from 'redrive/api'
import { queries } from '../../api/queries.ts'
import { useNow } from '../../app/preferences.tsx'
import { Loaded, SkeletonRows } from '../../ui/loading.tsx'
import { Panel } from '../../ui/page.tsx'
import { TimeChart, type ChartColor, type ChartSeries } from '../../ui/time-chart.tsx'
import { ranges, type Range } from './ranges.ts'

type Series = OutputOf<'getSeries'>
type Metric = Series['metric']

/** Both charts point at the same time. */
const cursor = 'overview'
const height = 168
const refreshMs = 60_000

const states = ['pending', 'retrying', 'parked', 'exhausted'] as const

/** Open letters by state. */
export function DepthChart({ range }: { range: Range }) {
  const depth = useSeries('depth', range)
  return (
    <Panel title={`Open letters by state, ${ranges[range].label}`}>
      <Loaded query={depth} skeleton={<SkeletonRows rows={5} />}>
        {(series) => (
          <TimeChart
            label={`Open letters by state, ${ranges[range].label}`}
            kind="areas"
            height={height}
            cursor={cursor}
            times={timesOf(series)}
            series={states.map((state) => ({
              label: state,
              color: state,
              values: valuesOf(series, (line) => line.state === state),
            }))}
          />
        )}
      </Loaded>
    </Panel>
  )
}

const rates: readonly { metric: Metric; label: string; color: ChartColor }[] = [
  { metric: 'captured', label: 'captured', color: 'accent' },
  { metric: 'resolved', label: 'resolved', color: 'resolved' },
  { metric: 'failed', label: 'failed again', color: 'exhausted' },
]

/** How many letters came, were resolved and failed again in each step. */
export function RatesChart({ range }: { range: Range }) {
  const captured = useSeries('captured', range)
  const resolved = useSeries('resolved', range)
  const failed = useSeries('failed', range)
  const all = [captured, resolved, failed]
  const lines: ChartSeries[] = rates.map(({ label, color }, index) => ({
    label,
    color,
    values: all[index]!.data ? valuesOf(all[index]!.data, () => true) : [],
  }))
  return (
    <Panel title={`Events in each ${stepTexts[ranges[range].step]}, ${ranges[range].label}`}>
      <Loaded query={captured} skeleton={<SkeletonRows rows={5} />}>
        {(series) => (
          <TimeChart
            label={`Captured, resolved and failed letters, ${ranges[range].label}`}
            height={height}
            cursor={cursor}
            times={timesOf(series)}
            series={lines.filter(({ values }) => values.length === series.times.length)}
          />
        )}
      </Loaded>
    </Panel>
  )
}

const stepTexts = { '5m': '5 minutes', '15m': '15 minutes', '6h': '6 hours', '1d': 'day' } as const

function useSeries(metric: Metric, range: Range) {
  const now = useNow()
  const { ms, step } = ranges[range]
  const minute = Math.floor(now / refreshMs)
  const input = useMemo(
    () => ({ metric, step, from: new Date(minute * refreshMs - ms).toISOString() }),
    [metric, step, minute, ms],
  )
  return useQuery({ ...queries.series(input), placeholderData: (previous) => previous })
}

function timesOf({ times }: Series): number[] {
  return times.map((time) => Date.parse(time))
}

function valuesOf(series: Series, isPart: (line: Series['lines'][number]) => boolean) {
  return series.lines.find(isPart)?.values ?? series.times.map(() => null)
}

import { lazy, Suspense, useState } from 'react'
import { Group, Skeleton } from '@mantine/core'
import { usePreferences } from '../app/preferences.tsx'
import { formatCount } from '../format/number.ts'
import { formatMinute } from '../format/time.ts'
import classes from './time-chart.module.css'

/** The names of the colours that a series may have, from tokens.css. */
export type ChartColor =
  | 'accent'
  | 'pending'
  | 'retrying'
  | 'resolved'
  | 'exhausted'
  | 'parked'
  | 'archived'

export interface ChartSeries {
  label: string
  color: ChartColor
  /** One value for each time. Null: there is no data, which is a gap. */
  values: readonly (number | null)[]
}

export interface TimeChartProps {
  /** What the chart shows, with unit and range: `Failures by hour, last 48 hours`. */
  label: string
  /** The starts of the intervals in milliseconds, evenly spaced, the oldest first. */
  times: readonly number[]
  series: readonly ChartSeries[]
  /** Bars and areas are stacked. Default: lines. */
  kind?: 'lines' | 'bars' | 'areas'
  height?: number
  format?: (value: number) => string
  /** Charts with the same name point at the same time. */
  cursor?: string
}

const UplotChart = lazy(async () => ({ default: (await import('./uplot-chart.tsx')).UplotChart }))

/** A chart over time. The line above it has the values at the pointer, or else the latest ones. */
export function TimeChart({ height = 160, ...props }: TimeChartProps) {
  const { label, times, series, format = formatCount } = props
  const { zone } = usePreferences()
  const [pointed, setPointed] = useState<number | undefined>()
  const shown = Math.min(pointed ?? Infinity, times.length - 1)
  const at = times[shown]
  const valueOf = (one: ChartSeries): string => {
    const value = one.values[shown]
    return value === null || value === undefined ? 'no data' : format(value)
  }
  return (
    <figure className={classes.figure} aria-label={label}>
      <Group gap={12} className={classes.legend} component="figcaption">
        {series.map((one) => (
          <span key={one.label} className={classes.entry}>
            <span className={classes.mark} data-color={one.color} />
            {one.label} <b className="numbers">{valueOf(one)}</b>
          </span>
        ))}
        <span className={classes.at}>{at === undefined ? '' : formatMinute(at, zone)}</span>
      </Group>
      <Suspense fallback={<Skeleton height={height} />}>
        <UplotChart {...props} height={height} zone={zone} onPoint={setPointed} />
      </Suspense>
    </figure>
  )
}

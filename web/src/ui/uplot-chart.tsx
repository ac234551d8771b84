import { useEffect, useRef } from 'react'
import { useComputedColorScheme } from '@mantine/core'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { findIsolated, formatTicks, stackValues } from '../format/chart.ts'
import { formatCompact } from '../format/number.ts'
import type { TimeZone } from '../format/time.ts'
import type { ChartColor, TimeChartProps } from './time-chart.tsx'
import classes from './time-chart.module.css'

type Drawn = Omit<TimeChartProps, 'label' | 'format'> & { height: number; zone: TimeZone }

type Props = Drawn & {
  /** The index of the time under the pointer. Undefined: the pointer is elsewhere. */
  onPoint: (index: number | undefined) => void
} & Pick<TimeChartProps, 'label' | 'format'>

/** The canvas of a chart. This module has the chart library and is loaded when a chart is shown. */
export function UplotChart({ onPoint, ...props }: Props) {
  const element = useRef<HTMLDivElement>(null)
  const scheme = useComputedColorScheme()
  // The chart is drawn again when its content changes, and not whenever the page is.
  const { label: _, format: __, ...drawn } = props
  const content = JSON.stringify(drawn)
  useEffect(() => {
    const target = element.current
    if (!target) return
    const chart = JSON.parse(content) as Drawn
    const plot = new UPlot(optionsOf(chart, scheme, target, onPoint), dataOf(chart), target)
    const resize = new ResizeObserver(() =>
      plot.setSize({ width: Math.max(100, target.clientWidth), height: chart.height }),
    )
    resize.observe(target)
    return () => {
      resize.disconnect()
      plot.destroy()
    }
  }, [content, scheme, onPoint])
  return <div ref={element} className={classes.canvas} style={{ height: props.height }} />
}

/** The library draws the first series first: of a stack, that is the highest one. */
function dataOf({ kind = 'lines', times, series }: Drawn): UPlot.AlignedData {
  const values = series.map((one) => one.values)
  const drawn = kind === 'lines' ? values : stackValues(values).toReversed()
  return [[...times], ...drawn.map((one) => [...one])]
}

function optionsOf(
  { kind = 'lines', series, height, zone, cursor }: Drawn,
  scheme: 'light' | 'dark',
  target: HTMLElement,
  onPoint: Props['onPoint'],
): UPlot.Options {
  const styles = getComputedStyle(target)
  const read = (name: string): string => styles.getPropertyValue(name).trim()
  const drawn = kind === 'lines' ? series : series.toReversed()
  const axis = {
    stroke: read('--text-dim'),
    font: '11px Inter Variable, sans-serif',
    grid: { stroke: read('--border'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: Math.max(100, target.clientWidth),
    height,
    ms: 1,
    // Half a label of the time axis.
    padding: [8, 18, 0, 0],
    legend: { show: false },
    tzDate: (ms) => (zone === 'UTC' ? UPlot.tzDate(new Date(ms), 'Etc/UTC') : new Date(ms)),
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: { show: kind === 'lines', size: 6 },
      ...(cursor === undefined ? {} : { sync: { key: cursor } }),
    },
    hooks: { setCursor: [({ cursor: { idx } }) => onPoint(idx ?? undefined)] },
    scales: {
      x: { time: true, range: (plot) => rangeOf(plot.data[0] as number[], kind) },
      y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        space: 64,
        values: (_plot, at, _n, _s, step) => formatTicks(at, step, zone),
      },
      { ...axis, size: 44, space: 32, incrs: steps, values: (_plot, at) => at.map(formatCompact) },
    ],
    series: [{}, ...drawn.map((one) => styleOf(one.label, colorOf(one.color, read), kind, scheme))],
    bands:
      kind === 'areas'
        ? drawn.slice(1).map((_, index) => ({ series: [index + 1, index + 2] }))
        : [],
  }
}

/** Counts are whole: no axis has a half. */
const steps = [1, 2, 5]
  .flatMap((n) => Array.from({ length: 10 }, (_, power) => n * 10 ** power))
  .sort((a, b) => a - b)

/** Bars begin at their time, so the last one needs room. */
function rangeOf(times: readonly number[], kind: Drawn['kind']): [number, number] {
  const first = times[0] ?? 0
  const last = times.at(-1) ?? 1
  const step = times.length > 1 ? times[1]! - first : 1
  return [first, kind === 'bars' ? last + step : Math.max(last, first + step)]
}

/** A line needs two values: a single one is drawn as a point. */
const points: UPlot.Series.Points = {
  show: true,
  size: 4,
  filter: ({ data }, series) => findIsolated(data[series] as (number | null)[]),
}

function styleOf(
  label: string,
  color: string,
  kind: Drawn['kind'],
  scheme: 'light' | 'dark',
): UPlot.Series {
  const base = { label, stroke: color, width: 1.5, points }
  const paths = UPlot.paths.bars!({ align: 1, size: [0.85, 48] })
  if (kind === 'bars') return { ...base, width: 0, fill: color, paths, points: { show: false } }
  const share = scheme === 'dark' ? 35 : 45
  const fill = `color-mix(in srgb, ${color} ${share}%, transparent)`
  return kind === 'areas' ? { ...base, fill } : base
}

function colorOf(color: ChartColor, read: (name: string) => string): string {
  return read(color === 'accent' ? '--mantine-primary-color-filled' : `--state-${color}`)
}

import { z } from 'zod'
import { states } from '../../letter/letter.ts'
import { timestamp } from './filter.ts'

const count = z.int().nonnegative()

/** What is counted over time. `depth` is the number of letters, the others are events. */
export const seriesMetrics = ['captured', 'resolved', 'failed', 'depth'] as const
export type SeriesMetric = (typeof seriesMetrics)[number]

const minuteMs = 60_000
/** Lengths of a step. */
export const seriesSteps = {
  '5m': 5 * minuteMs,
  '15m': 15 * minuteMs,
  '1h': 60 * minuteMs,
  '6h': 360 * minuteMs,
  '1d': 1440 * minuteMs,
} as const
export type SeriesStep = keyof typeof seriesSteps

/** Values of one queue, or of all queues of the answer together, one for each time. */
const seriesLine = z.strictObject({
  queue: z.string().exactOptional().describe('Absent: all queues together.'),
  state: z.enum(states).exactOptional().describe('Only with the metric depth.'),
  values: z.array(count.nullable()).describe('Null: no server took a sample in this step.'),
})

export const seriesView = z
  .strictObject({
    metric: z.enum(seriesMetrics),
    step: z.enum(Object.keys(seriesSteps) as [SeriesStep, ...SeriesStep[]]),
    times: z.array(timestamp).describe('The end of each step.'),
    lines: z.array(seriesLine),
  })
  .meta({ id: 'Series' })
export type SeriesView = z.infer<typeof seriesView>

import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { oneOrMore, timestamp } from '../schemas/filter.ts'
import { seriesMetrics, seriesSteps, seriesView, type SeriesStep } from '../schemas/series.ts'

const steps = Object.keys(seriesSteps) as [SeriesStep, ...SeriesStep[]]

export const seriesEndpoints = {
  getSeries: endpoint({
    method: 'GET',
    path: '/api/series',
    tag: 'Reports',
    summary:
      'Returns a metric over time, from samples that servers take every 5 minutes, and the values of now for a step that is not over. Samples older than 2 days are 1 hour apart, and are kept for 30 days.',
    permission: 'letter:read',
    bounds: 'queues',
    input: z.strictObject({
      metric: z
        .enum(seriesMetrics)
        .describe(
          '`depth`: letters by state at the end of each step. Others: events in each step.',
        ),
      queue: oneOrMore(z.string().min(1).max(1000)).optional().describe('Default: all queues.'),
      by: z.literal('queue').optional().describe('A line for each queue, at most 50.'),
      from: timestamp.optional().describe('Default: 24 hours before `to`.'),
      to: timestamp.optional().describe('Default: now.'),
      step: z.enum(steps).optional().describe('Default: at most 500 steps.'),
    }),
    output: seriesView,
  }),
}

import { z } from 'zod'
import {
  categories,
  priorities,
  recoverabilities,
  severities,
  type RetryPolicy,
} from '../../letter/letter.ts'
import { endpoint, metricsType } from '../endpoint.ts'
import { filterSchema, filterShape } from '../schemas/filter.ts'
import { summaryView } from '../schemas/letter.ts'
import {
  alertChangeView,
  alertDeliveryView,
  alertView,
  backtestReport,
  healthView,
  metricsView,
  targetTestView,
} from '../schemas/report.ts'

const tag = 'Reports'
const nothing = z.strictObject({})
const alertLimit = z.int().min(1).max(500).optional().describe('Default: 500.')
const maxRetries = z.int().min(0).max(1000)
/** The queue checks it, with its defaults. */
const retryPolicy = z
  .custom<RetryPolicy>((value) => typeof value === 'object' && value !== null, 'must be an object')
  .describe('A backoff such as { "kind": "fixed", "delayMs": 1000 }.')

const ruleMatch = z.strictObject({
  errorName: z.string().min(1).exactOptional(),
  code: z.string().min(1).exactOptional(),
  status: z.int().exactOptional(),
  message: z.string().min(1).exactOptional().describe('Part of the message.'),
})
const rule = z.strictObject({
  name: z.string().min(1),
  when: z.union([ruleMatch, z.array(ruleMatch).min(1)]),
  category: z.enum(categories),
  severity: z.enum(severities).exactOptional(),
  recoverability: z.enum(recoverabilities).exactOptional(),
  detail: z.string().exactOptional(),
  hint: z.string().exactOptional(),
  backoff: retryPolicy.exactOptional(),
  maxRetries: maxRetries.exactOptional(),
  priority: z.enum(priorities).exactOptional(),
})

export const reportEndpoints = {
  listAlerts: endpoint({
    method: 'GET',
    path: '/api/alerts',
    tag,
    summary: 'Lists raised alerts. A caller with a scope sees those of its queues.',
    permission: 'letter:read',
    bounds: 'queues',
    input: nothing,
    output: z.array(alertView),
  }),
  listAlertHistory: endpoint({
    method: 'GET',
    path: '/api/alerts/history',
    tag,
    summary:
      'Lists alerts that were raised and cleared, the newest first. A caller with a scope sees those of its queues.',
    permission: 'letter:read',
    bounds: 'queues',
    input: z.strictObject({ limit: alertLimit }),
    output: z.array(alertChangeView),
  }),
  listAlertDeliveries: endpoint({
    method: 'GET',
    path: '/api/alerts/deliveries',
    tag,
    summary: 'Lists notifications that wait, were delivered or failed, the newest first.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({ limit: alertLimit }),
    output: z.array(alertDeliveryView),
  }),
  acknowledgeAlert: endpoint({
    method: 'POST',
    path: '/api/alerts/{name}/acknowledge',
    tag,
    summary: 'Ends the reminders of a raised alert until it clears.',
    permission: 'letter:retry',
    bounds: 'queues',
    input: z.strictObject({
      name: z.string().min(1).max(400),
      note: z.string().min(1).max(1000).exactOptional(),
    }),
    output: alertView,
  }),
  testAlertTarget: endpoint({
    method: 'POST',
    path: '/api/alerts/test',
    tag,
    summary: 'Sends a test to a target for notifications, and returns what it answered.',
    permission: 'admin',
    bounds: 'all',
    input: z.strictObject({ target: z.string().min(1).max(50) }),
    output: targetTestView,
  }),
  getHealth: endpoint({
    method: 'GET',
    path: '/api/health',
    tag,
    summary: 'Returns the health of the store and of the process of the server.',
    permission: 'letter:read',
    bounds: 'all',
    input: nothing,
    output: healthView,
  }),
  getMetrics: endpoint({
    method: 'GET',
    path: '/api/metrics',
    tag,
    summary: 'Returns counters and averages since the store was created.',
    permission: 'letter:read',
    bounds: 'all',
    input: nothing,
    output: metricsView,
  }),
  getMetricsSince: endpoint({
    method: 'POST',
    path: '/api/metrics',
    tag,
    summary: 'Returns counters and averages of what happened after an earlier result.',
    permission: 'letter:read',
    bounds: 'all',
    input: z.strictObject({
      since: metricsView.describe('A response of GET /api/metrics of the same store.'),
    }),
    output: metricsView,
  }),
  scrapeMetrics: endpoint({
    method: 'GET',
    path: '/metrics',
    tag,
    summary: 'Returns the metrics of the store and of this server in the format of Prometheus.',
    permission: 'letter:read',
    bounds: 'all',
    input: nothing,
    output: z.string(),
    text: metricsType,
  }),
  // A rule that matches messages tells what they say, so that reading the report is reading them.
  backtest: endpoint({
    method: 'POST',
    path: '/api/backtest',
    tag,
    summary:
      'Reports what other rules, backoffs or retry limits would have done to stored letters.',
    permission: 'payload:read',
    bounds: 'filter',
    input: z.strictObject({
      filter: filterSchema.optional(),
      rules: z.array(rule).max(1000).exactOptional(),
      policy: retryPolicy.exactOptional(),
      maxRetries: maxRetries.exactOptional(),
      maxRetriesByCategory: z.partialRecord(z.enum(categories), maxRetries).exactOptional(),
      limit: z
        .int()
        .min(1)
        .max(100_000)
        .exactOptional()
        .describe('Letters to read, the newest first. Default: 10,000.'),
    }),
    output: backtestReport,
  }),
  searchLetters: endpoint({
    method: 'GET',
    path: '/api/search',
    tag: 'Letters',
    summary: 'Searches letters by words, best match first. Needs a store with full-text search.',
    permission: 'payload:read',
    bounds: 'filter',
    input: z.strictObject({
      ...filterShape,
      words: z.string().min(1).max(1000).describe('Letters that have all these words.'),
      payload: z.boolean().optional().describe('True: also in payloads.'),
      limit: z.int().min(0).max(1000).optional().describe('Default: 50.'),
    }),
    output: z.array(summaryView),
  }),
}

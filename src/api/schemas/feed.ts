import { z } from 'zod'
import { groupChangeKinds } from '../../letter/group.ts'
import { states } from '../../letter/letter.ts'
import { bulkActionView } from './bulk.ts'
import { timestamp } from './filter.ts'
import { groupView } from './group.ts'
import { summaryView } from './letter.ts'
import { alertView } from './report.ts'

const count = z.int().nonnegative()
const countsByState = z.partialRecord(z.enum(states), count)

const lettersEvent = z
  .strictObject({
    type: z.literal('letters'),
    items: z.array(summaryView).describe('The oldest first, at most 100.'),
    more: count
      .exactOptional()
      .describe(
        'Further new letters that are not in `items`, which has the newest: read the list again. At 900, there may be more still.',
      ),
  })
  .describe('New letters. A letter can come twice, after a reconnect.')

const countsEvent = z
  .strictObject({
    type: z.literal('counts'),
    states: countsByState.describe(
      'Number of letters by state. States without letters are absent.',
    ),
    queues: z
      .record(z.string(), countsByState)
      .describe('The same of each queue that has changed since the last event; at first, of all.'),
    more: z
      .literal(true)
      .exactOptional()
      .describe('More than 1,000 queues have changed: read the queues again.'),
  })
  .describe('Counts have changed. Not sent to callers that are limited to tenants.')

/** What a bulk action has done so far. */
const bulkProgress = bulkActionView.pick({
  id: true,
  action: true,
  state: true,
  by: true,
  count: true,
  progress: true,
  startedAt: true,
  endedAt: true,
  stopReason: true,
  problem: true,
  hidden: true,
})

const bulkEvent = z
  .strictObject({ type: z.literal('bulk-action'), action: bulkProgress })
  .describe('A running bulk action has made progress, or has ended.')

const alertEvent = z
  .strictObject({
    type: z.literal('alert'),
    state: z.enum(['raised', 'cleared']),
    alert: alertView,
  })
  .describe('An alert was raised or cleared. Not sent to callers that are limited to tenants.')

const groupEvent = z
  .strictObject({
    type: z.literal('group'),
    change: z
      .enum(['new', ...groupChangeKinds])
      .describe('`regress` and `limit` are caused by letters, others but `new` by people.'),
    at: timestamp,
    by: z.string().exactOptional().describe('Absent: the group is new.'),
    group: groupView.describe('The group after the change.'),
  })
  .describe(
    'A group is new, or has changed: its status, its assignee, its notes or its members. Of several changes within a second, the last one. Not sent to callers that are limited to tenants.',
  )

const readyEvent = z
  .strictObject({ type: z.literal('ready') })
  .describe('The current counts, bulk actions and alerts are complete: what follows is new.')

const resetEvent = z
  .strictObject({ type: z.literal('reset'), reason: z.string() })
  .describe('Letters are missing since the last event: read everything again.')

export const feedEvent = z
  .discriminatedUnion('type', [
    lettersEvent,
    countsEvent,
    bulkEvent,
    alertEvent,
    groupEvent,
    readyEvent,
    resetEvent,
  ])
  .meta({ id: 'FeedEvent' })
export type FeedEvent = z.infer<typeof feedEvent>

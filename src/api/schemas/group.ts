import { z } from 'zod'
import { groupChangeKinds, groupStatuses } from '../../letter/group.ts'
import { categories, states } from '../../letter/letter.ts'
import { timestamp } from './filter.ts'
import { contentHidden } from './letter.ts'

const count = z.int().nonnegative()

/** Letters with the same cause. */
export const groupView = z
  .strictObject({
    fingerprint: z.string(),
    merged: z.array(z.string()).exactOptional().describe('Fingerprints that were merged into it.'),
    title: z.string().describe('First line of the newest failure.'),
    queue: z.string().describe('Queue of the newest failure.'),
    category: z.enum(categories),
    status: z.enum(groupStatuses),
    assignee: z.string().exactOptional(),
    count: count.describe('Number of letters.'),
    states: z.partialRecord(z.enum(states), count),
    firstSeen: timestamp,
    lastSeen: timestamp,
    growth: z.int().describe('Failures of the last 24 hours, minus those of the 24 hours before.'),
    trend: z
      .array(count)
      .describe('Failures in each of the last 24 clock hours, the oldest first.'),
    sampleId: z.string().describe('Id of the newest letter.'),
    hidden: contentHidden,
  })
  .meta({ id: 'Group' })
export type GroupView = z.infer<typeof groupView>

const trendPoint = z.strictObject({ at: timestamp, count })
const facet = z.strictObject({
  name: z.string(),
  count,
  firstSeen: timestamp,
  lastSeen: timestamp,
})

/** A group with its trend, what it affects, its notes and its history. */
export const groupDetailView = groupView
  .extend({
    trend: z.strictObject({ hours: z.array(trendPoint), days: z.array(trendPoint) }),
    queues: z.array(facet),
    tenants: z.array(facet),
    hosts: z.array(facet),
    versions: z.array(facet),
    resolved: z
      .strictObject({ at: timestamp, by: z.string(), inVersion: z.string().exactOptional() })
      .exactOptional(),
    ignored: z
      .strictObject({
        at: timestamp,
        by: z.string(),
        until: timestamp.exactOptional(),
        count: count.exactOptional(),
        rate: count.exactOptional(),
        seen: count,
      })
      .exactOptional(),
    notes: z.array(z.strictObject({ at: timestamp, by: z.string(), text: z.string() })),
    history: z.array(
      z.strictObject({
        at: timestamp,
        by: z.string(),
        change: z.enum(groupChangeKinds),
        from: z.enum(groupStatuses),
        to: z.enum(groupStatuses),
        note: z.string().exactOptional(),
      }),
    ),
  })
  .meta({ id: 'GroupDetail' })
export type GroupDetailView = z.infer<typeof groupDetailView>

export const groupExplanation = z.strictObject({
  category: z.enum(categories).describe('The category that the failure has by the current rules.'),
  rule: z.string().describe('The rule that decides the category: `code:ECONNRESET`, `user:NAME`.'),
  fingerprint: z.string().describe('The fingerprint of the letter.'),
  group: z.string().describe('The fingerprint of the group.'),
  computed: z.string().describe('The fingerprint that the failure has by the current rules.'),
  parts: z.array(z.strictObject({ part: z.string(), value: z.string() })),
  frames: z.array(z.strictObject({ frame: z.string(), used: z.boolean() })),
  masked: z.array(z.string()).describe('Variable parts of the message that do not count.'),
})

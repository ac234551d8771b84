import { z } from 'zod'
import { streamEndpoint } from '../endpoint.ts'
import { feedEvent } from '../schemas/feed.ts'
import { oneOrMore } from '../schemas/filter.ts'

const name = z.string().min(1).max(1000)

export const eventEndpoints = {
  watchEvents: streamEndpoint({
    method: 'GET',
    path: '/api/events',
    tag: 'Events',
    summary:
      'Sends new letters, changed counts, progress of bulk actions, alerts and changes of groups as they come (Server-Sent Events).',
    permission: 'letter:read',
    bounds: 'filter',
    input: z.strictObject({
      queue: oneOrMore(name).optional(),
      tenant: name.optional(),
      after: z
        .string()
        .max(200)
        .optional()
        .describe(
          'The `id` of an event: starts with the letters since then. The header Last-Event-ID has precedence. 0: all letters.',
        ),
    }),
    output: feedEvent,
    stream: 'events',
  }),
}

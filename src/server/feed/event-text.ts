import type { FeedEvent } from '../../api/schemas/feed.ts'

/** The beginning of a stream: a client that loses its connection waits so long, in milliseconds. */
export const streamStart = 'retry: 2000\n\n'
/** Keeps proxies from closing a quiet connection, and lets clients notice a lost one. */
export const heartbeat = ': heartbeat\n\n'

/** An event as Server-Sent Events have it. JSON has no line breaks. */
export function toText(event: FeedEvent, id?: string): string {
  const position = id === undefined ? '' : `id: ${id}\n`
  return `event: ${event.type}\n${position}data: ${JSON.stringify(event)}\n\n`
}

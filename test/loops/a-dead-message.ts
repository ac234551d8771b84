import { encodePayload } from '../../src/letter/payload.ts'
import type { DeadMessage } from '../../src/loops/dead-message.ts'

/** A typical dead message. */
export function aDeadMessage(given: Partial<DeadMessage> = {}): DeadMessage {
  const at = '2026-01-01T00:00:00.000Z'
  return {
    messageId: 'm-1',
    body: encodePayload({ order: 42 }),
    sourceMailbox: 'requests',
    deliveryCount: 5,
    lastError: 'no such order',
    lastErrorType: 'TypeError',
    deadLetteredAt: at,
    firstReceivedAt: at,
    enqueuedAt: at,
    headers: {},
    failure: { name: 'TypeError', message: 'no such order', causes: [], at },
    history: [],
    firstFailedAt: at,
    replays: 0,
    originalId: given.messageId ?? 'm-1',
    ...given,
  }
}

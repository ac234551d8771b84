import type { DeadMessage } from '../dead-message.ts'
import type { DeadLetterHandler } from '../dlq-consumer.ts'

export interface AlertOptions {
  /** Any logger that takes fields and a message. */
  log?: { error: (fields: object, message: string) => void }
  /** Tells people. When it throws, the message comes again. */
  notify?: (dead: DeadMessage) => unknown
}

/** Says that a message is dead, and takes it off the queue. The body and the headers are not logged. */
export function alertHandler({ log, notify }: AlertOptions): DeadLetterHandler {
  return async (dead) => {
    const { messageId, requestId, lastErrorType, lastError, deliveryCount, sourceMailbox } = dead
    log?.error(
      {
        messageId,
        ...(requestId === undefined ? {} : { requestId }),
        errorType: lastErrorType,
        error: lastError.slice(0, 500),
        deliveryCount,
        source: sourceMailbox,
      },
      'Request dead-lettered',
    )
    await notify?.(dead)
    return { action: 'alerted' }
  }
}

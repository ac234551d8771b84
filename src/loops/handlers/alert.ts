import { RedriveError } from '../../errors.ts'
import { keysOf } from '../../check/keys.ts'
import { hasMethods } from '../../letter/reading.ts'
import { checkOptions, optionalFunction, wrongOption } from '../check-options.ts'
import type { DeadMessage } from '../dead-message.ts'
import type { DeadLetterHandler } from './handler.ts'

/** At least one of the two is required. */
export interface AlertOptions {
  /** Any logger that takes fields and a message. */
  log?: { error: (fields: object, message: string) => void }
  /** Notifies people. If it throws, the message is delivered again. */
  notify?: (dead: DeadMessage) => unknown
}

const alertKeys = keysOf<AlertOptions>({ log: true, notify: true })

/**
 * Reports a dead message and removes it from the queue. The body and the headers are not logged.
 * The consumer reports the action `alerted`, which `metricsOf` counts as `dlq.messages` by source
 * and error type.
 */
export function alertHandler(options: AlertOptions): DeadLetterHandler {
  checkOptions('alertHandler', options, alertKeys)
  const { log, notify } = options
  if (log !== undefined && !hasMethods(log, 'error'))
    throw wrongOption('alertHandler', 'log', 'a logger with the method error', log)
  optionalFunction('alertHandler', 'notify', notify)
  if (!log && !notify)
    throw new RedriveError(
      'INVALID_CONFIG',
      'alertHandler needs the option log or notify: without them, dead messages would be removed unseen',
    )
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

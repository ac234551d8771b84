import { RedriveError } from '../errors.ts'
import { toMs } from '../letter/time.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import type { Emit } from './events.ts'

/**
 * Whether an error says that this delivery is no longer ours: its lease expired, or it was
 * finalised.
 */
export function isLost(error: unknown): boolean {
  return (
    error instanceof RedriveError &&
    (error.code === 'RECEIPT_EXPIRED' || error.code === 'MESSAGE_FINALIZED')
  )
}

/** One message of one mailbox, and the listener for its events. */
export interface DeliveryContext {
  mailbox: Mailbox
  message: Message
  emit: Emit
}

/**
 * Runs an action that ends or extends a delivery. Returns false if it failed; the failure is
 * reported, and the message is delivered again.
 */
export async function settle(
  { mailbox, message, emit }: DeliveryContext,
  during: string,
  act: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    if (isLost(error))
      emit({ type: 'message-lost', mailbox: mailbox.name, messageId: message.id, during })
    else emit({ type: 'error', during: `${during} a message of ${mailbox.name}`, error })
    return false
  }
}

/** Enough time for the step that follows. */
const marginSeconds = 30

/**
 * Whether the delivery is still ours. Asks the broker for an extension, right before a step that
 * must not be done twice. Where the broker cannot extend, the end of the lease decides.
 */
export async function isStillOurs(
  settling: DeliveryContext,
  during: string,
  nowMs: number,
): Promise<boolean> {
  const { mailbox, message, emit } = settling
  if (mailbox.powers.extend) return settle(settling, during, () => message.extend(marginSeconds))
  if (toMs(message.visibleAt) > nowMs && !message.finalized) return true
  emit({ type: 'message-lost', mailbox: mailbox.name, messageId: message.id, during })
  return false
}

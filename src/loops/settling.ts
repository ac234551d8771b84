import { RedriveError } from '../errors.ts'
import { toMs } from '../letter/time.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import type { Tell } from './events.ts'

/** Whether an error says that this delivery is no longer ours: it lapsed, or it was finalised meanwhile. */
export function isLost(error: unknown): boolean {
  return (
    error instanceof RedriveError &&
    (error.code === 'RECEIPT_EXPIRED' || error.code === 'MESSAGE_FINALIZED')
  )
}

/** One message of one mailbox, and who is told about it. */
export interface Settling {
  mailbox: Mailbox
  message: Message
  tell: Tell
}

/** Does what ends or keeps a delivery. False: it could not be done, and that was told; the message comes again. */
export async function settle(
  { mailbox, message, tell }: Settling,
  during: string,
  act: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    if (isLost(error))
      tell({ type: 'message-lost', mailbox: mailbox.name, messageId: message.id, during })
    else tell({ type: 'error', during: `${during} of a message of ${mailbox.name}`, error })
    return false
  }
}

/** Enough for what comes next. */
const marginSeconds = 30

/**
 * Whether the delivery is still ours, by asking the broker for more time, right before something that must not be done twice. Where it cannot
 * extend, the time alone tells.
 */
export async function stillOurs(
  settling: Settling,
  during: string,
  nowMs: number,
): Promise<boolean> {
  const { mailbox, message, tell } = settling
  if (mailbox.powers.extend) return settle(settling, during, () => message.extend(marginSeconds))
  if (toMs(message.visibleAt) > nowMs && !message.finalized) return true
  tell({ type: 'message-lost', mailbox: mailbox.name, messageId: message.id, during })
  return false
}

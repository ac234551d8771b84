import type { Door } from '../capture/capture.ts'
import type { CaptureContext } from '../capture/context.ts'
import { messageCapture, messageKey } from '../capture/mailbox.ts'
import { RedriveError } from '../errors.ts'
import type { Mailbox } from '../mailbox.ts'
import {
  envelopeType,
  slimEnvelopeType,
  toEnvelope,
  toSlimEnvelope,
  type DeadMessage,
} from './dead-message.ts'

/** Where dead messages are kept. */
export interface Destination {
  /** For people. */
  readonly name: string
  /** The mailbox behind it, if there is one: loops look here for circles. */
  readonly mailbox?: Mailbox
  /**
   * Resolves once it is kept, durably if that can be. Doing it again for the same message adds nothing where a repeat can be
   * recognised. `thrown` is what it died of.
   */
  keep(dead: DeadMessage, thrown: unknown): Promise<void>
}

export interface MailboxDestinationOptions {
  /** Consumers see a dead message after this long: time to mend what broke, before it is replayed by itself. At once unless said. */
  delaySeconds?: number
}

/** Keeps dead messages in a mailbox, of whatever broker. A repeat adds nothing where the broker deduplicates. */
export function mailboxDestination(
  mailbox: Mailbox,
  { delaySeconds = 0 }: MailboxDestinationOptions = {},
): Destination {
  if (delaySeconds > 0 && !mailbox.powers.delay)
    throw new RedriveError(
      'INVALID_CONFIG',
      `${mailbox.powers.kind} cannot delay messages: leave delaySeconds out`,
    )
  return {
    name: mailbox.name,
    mailbox,
    keep: async (dead) => {
      const { traceparent } = dead.headers
      const whole = Buffer.from(toEnvelope(dead))
      const fits = whole.byteLength <= mailbox.powers.maxBodyBytes
      await mailbox.send(fits ? whole : toSlimEnvelope(dead), {
        id: messageKey(dead),
        contentType: fits ? envelopeType : slimEnvelopeType,
        ...(delaySeconds > 0 ? { delaySeconds } : {}),
        ...(traceparent === undefined ? {} : { headers: { traceparent } }),
      })
    },
  }
}

export interface LetterDestinationOptions {
  /** The queue of the letters. The name of the mailbox unless said. */
  queue?: string
  /** What to say about a message beside its error: a priority, tags, a lane. */
  context?: (dead: DeadMessage) => CaptureContext
}

/** Keeps dead messages as letters. A repeat adds nothing as long as the letter is kept. */
export function letterDestination(
  door: Pick<Door, 'capture'>,
  { queue, context }: LetterDestinationOptions = {},
): Destination {
  return {
    name: queue === undefined ? 'letters' : `letters of ${queue}`,
    keep: async (dead, thrown) => {
      const said = { context: context?.(dead) ?? {}, ...(queue === undefined ? {} : { queue }) }
      await door.capture(messageCapture(dead, thrown, said))
    },
  }
}

export function destinationOf(given: Mailbox | Destination): Destination {
  return 'keep' in given ? given : mailboxDestination(given)
}

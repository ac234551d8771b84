import type { Door } from '../capture/capture.ts'
import type { CaptureContext } from '../capture/context.ts'
import { messageCapture, messageKey } from '../capture/mailbox.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys } from '../keys.ts'
import type { Mailbox } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds } from '../mailboxes/bounds.ts'
import {
  besideBodyOf,
  envelopeType,
  slimEnvelopeType,
  toEnvelope,
  toSlimEnvelope,
  traceparentIn,
  type DeadMessage,
} from './dead-message.ts'

/** Where dead messages are kept. */
export interface Destination {
  /** For people. */
  readonly name: string
  /** The mailbox behind it, if there is one: loops look here for circles. */
  readonly mailbox?: Mailbox
  /** Called by a loop with the mailbox whose dead messages are kept here, so that they can be replayed to it. */
  addSource?(source: Mailbox): void
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
  bounded('delaySeconds', delaySeconds, mailbox.powers.maxDelaySeconds ?? maxVisibilitySeconds)
  return {
    name: mailbox.name,
    mailbox,
    keep: async (dead) => {
      // What is none may not even fit into a header, and the message would never be kept.
      const traceparent = traceparentIn(dead.headers)
      const { body, contentType, headers } = packed(dead, mailbox)
      await mailbox.send(body, {
        id: messageKey(dead),
        contentType,
        ...(delaySeconds > 0 ? { delaySeconds } : {}),
        headers: traceparent === undefined ? headers : { ...headers, traceparent },
      })
    },
  }
}

interface Packed {
  body: Uint8Array
  contentType: string
  headers: Record<string, string>
}

/** As much of it as the mailbox takes, and the body in any case. */
function packed(dead: DeadMessage, { name, powers }: Mailbox): Packed {
  const { kind, maxBodyBytes } = powers
  const whole = Buffer.from(toEnvelope(dead))
  if (whole.byteLength <= maxBodyBytes)
    return { body: whole, contentType: envelopeType, headers: {} }
  const contentType = slimEnvelopeType
  const slim = toSlimEnvelope(dead)
  if (slim.byteLength <= maxBodyBytes) return { body: slim, contentType, headers: {} }
  const { bytes } = dead.body
  const beside = besideBodyOf(dead)
  if (beside && bytes.byteLength <= maxBodyBytes)
    return { body: bytes, contentType, headers: beside }
  throw new RedriveError(
    'TOO_LARGE',
    `message ${dead.messageId} cannot be kept in ${name}: with what is known about it, its ${bytes.byteLength} bytes are more than ${kind} takes there (${maxBodyBytes}); keep such messages as letters, or in a mailbox that takes more`,
  )
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
  options: LetterDestinationOptions = {},
  addSource: (source: Mailbox) => void = () => {},
): Destination {
  checkKeys('deadLetters options', options, ['queue', 'context'], { code: 'INVALID_CONFIG' })
  const { queue, context } = options
  return {
    addSource,
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

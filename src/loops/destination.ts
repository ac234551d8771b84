import type { Capturer } from '../capture/capture.ts'
import { type CaptureContext } from '../capture/context.ts'
import { checkQueueName } from '../check/queue-name.ts'
import { messageCapture, messageKey } from '../capture/mailbox.ts'
import { RedriveError } from '../errors.ts'
import { keysOf } from '../check/keys.ts'
import type { State } from '../letter/letter.ts'
import { hasMethods } from '../letter/reading.ts'
import type { Mailbox } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds } from '../backends/bounds.ts'
import { letterQueueName } from '../observers/metrics/handled-letter.ts'
import type { Store } from '../store.ts'
import {
  checkOptions,
  isMailbox,
  optionalFunction,
  requireMailbox,
  wrongOption,
} from './check-options.ts'
import {
  toSummaryHeader,
  envelopeType,
  slimEnvelopeType,
  toEnvelope,
  toSlimEnvelope,
  traceparentIn,
  type DeadMessage,
} from './dead-message.ts'
import type { QueueDepth } from './queue-depth.ts'

/** Where dead messages are stored. */
export interface Destination {
  /** For people. */
  readonly name: string
  /** The mailbox behind this destination, if there is one. Loops use it to detect cycles. */
  readonly mailbox?: Mailbox
  /**
   * Called by a loop with the mailbox whose dead messages are stored here, so that they can be
   * replayed to it.
   */
  addSource?(source: Mailbox): void
  /**
   * Resolves once the message is stored, durably if possible. Storing the same message again adds
   * nothing where duplicates can be detected. `thrown` is the error that the message died of.
   */
  keep(dead: DeadMessage, thrown: unknown): Promise<void>
  /**
   * Counts the stored messages of a source that are not handled yet. A loop reports this count
   * periodically if the method exists.
   */
  depth?(sourceMailbox: string): Promise<QueueDepth>
}

export interface MailboxDestinationOptions {
  /**
   * Consumers see a dead message after this delay: time to repair the cause before the message is
   * replayed automatically. Default: 0.
   */
  delaySeconds?: number
}

const mailboxDestinationKeys = keysOf<MailboxDestinationOptions>({ delaySeconds: true })

/**
 * Stores dead messages in a mailbox of any broker. A duplicate adds nothing where the broker
 * deduplicates.
 */
export function mailboxDestination(
  mailbox: Mailbox,
  options: MailboxDestinationOptions = {},
): Destination {
  requireMailbox('mailboxDestination', 'mailbox', mailbox)
  checkOptions('mailboxDestination', options, mailboxDestinationKeys)
  const { delaySeconds = 0 } = options
  if (delaySeconds > 0 && !mailbox.powers.delay)
    throw new RedriveError(
      'INVALID_CONFIG',
      `${mailbox.powers.kind} cannot delay messages: remove delaySeconds`,
    )
  bounded('delaySeconds', delaySeconds, mailbox.powers.maxDelaySeconds ?? maxVisibilitySeconds)
  return {
    name: mailbox.name,
    mailbox,
    keep: async (dead) => {
      // An invalid traceparent may not even fit into a header, and the message could never be
      // stored.
      const traceparent = traceparentIn(dead.headers)
      const { body, contentType, headers } = packMessage(dead, mailbox)
      await mailbox.send(body, {
        id: messageKey(dead),
        contentType,
        ...(delaySeconds > 0 ? { delaySeconds } : {}),
        headers: traceparent === undefined ? headers : { ...headers, traceparent },
      })
    },
  }
}

interface PackedMessage {
  body: Uint8Array
  contentType: string
  headers: Record<string, string>
}

/** As much of the message as the mailbox allows, and always the body. */
function packMessage(dead: DeadMessage, { name, powers }: Mailbox): PackedMessage {
  const { kind, maxBodyBytes } = powers
  const whole = Buffer.from(toEnvelope(dead))
  if (whole.byteLength <= maxBodyBytes)
    return { body: whole, contentType: envelopeType, headers: {} }
  const contentType = slimEnvelopeType
  const slim = toSlimEnvelope(dead)
  if (slim.byteLength <= maxBodyBytes) return { body: slim, contentType, headers: {} }
  const { bytes } = dead.body
  const summary = toSummaryHeader(dead)
  if (summary && bytes.byteLength <= maxBodyBytes)
    return { body: bytes, contentType, headers: summary }
  throw new RedriveError(
    'TOO_LARGE',
    `message ${dead.messageId} cannot be stored in ${name}: its ${bytes.byteLength} bytes and its error exceed the limit of ${kind} (${maxBodyBytes}); store such messages as letters, or in a mailbox with a higher limit`,
  )
}

export interface LetterDestinationOptions {
  /** The queue of the letters. Default: the name of the mailbox. */
  queue?: string
  /** Further fields of a letter: priority, tags, lane. */
  context?: (dead: DeadMessage) => CaptureContext
}

const letterDestinationKeys = keysOf<LetterDestinationOptions>({ queue: true, context: true })

/** States of letters that still need to be handled. */
const openStates: State[] = ['pending', 'retrying', 'exhausted', 'parked']

/**
 * Stores dead messages as letters. A duplicate adds nothing as long as the letter exists. With
 * `store`, their depth can be reported.
 */
export function letterDestination(
  capturer: Pick<Capturer, 'capture'>,
  options: LetterDestinationOptions = {},
  store?: Pick<Store, 'find' | 'tally'>,
  addSource: (source: Mailbox) => void = () => {},
): Destination {
  checkOptions('deadLetters', options, letterDestinationKeys)
  const { queue, context } = options
  if (queue !== undefined) checkQueueName(queue)
  optionalFunction('deadLetters', 'context', context)
  return {
    addSource,
    name: queue === undefined ? 'letters' : letterQueueName(queue),
    keep: async (dead, thrown) => {
      const settings = { context: context?.(dead) ?? {}, ...(queue === undefined ? {} : { queue }) }
      await capturer.capture(messageCapture(dead, thrown, settings))
    },
    ...(store ? { depth: (mailbox: string) => measureLetters(store, queue ?? mailbox) } : {}),
  }
}

async function measureLetters(
  store: Pick<Store, 'find' | 'tally'>,
  queue: string,
): Promise<QueueDepth> {
  const waiting = { queue, state: openStates }
  const [counts, oldest] = await Promise.all([
    store.tally('queue', waiting),
    store.find({ ...waiting, order: 'oldest', limit: 1 }),
  ])
  const oldestAt = oldest.items[0]?.deadLetteredAt
  const name = letterQueueName(queue)
  return { name, depth: counts.get(queue) ?? 0, ...(oldestAt === undefined ? {} : { oldestAt }) }
}

/**
 * Accepts a mailbox or a destination. `thing` and `option` name the option, as in "MainLoop" and
 * "dlq.to".
 */
export function toDestination(given: unknown, thing: string, option: string): Destination {
  if (isDestination(given)) return given
  if (isMailbox(given)) return mailboxDestination(given)
  throw wrongOption(thing, option, 'a mailbox, or a destination such as dlq.deadLetters()', given)
}

export function isDestination(value: unknown): value is Destination {
  return hasMethods(value, 'keep')
}

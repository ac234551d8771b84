import type { Capturer } from '../capture/capture.ts'
import { type CaptureContext } from '../capture/context.ts'
import { checkQueueName } from '../check/queue-name.ts'
import { messageCapture, messageKey } from '../capture/mailbox.ts'
import { RedriveError } from '../errors.ts'
import { keysOf } from '../check/keys.ts'
import type { State } from '../letter/letter.ts'
import type { Mailbox } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds } from '../backends/bounds.ts'
import type { Store } from '../store.ts'
import {
  checkOptions,
  isMailbox,
  optionalFunction,
  requireMailbox,
  wrongOption,
  hasMethod,
} from './check-options.ts'
import {
  besideBodyOf,
  envelopeType,
  slimEnvelopeType,
  toEnvelope,
  toSlimEnvelope,
  traceparentIn,
  type DeadMessage,
} from './dead-message.ts'
import type { QueueDepth } from './queue-depth.ts'

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
  /** Counts the dead messages of a source that are kept and not dealt with. A loop reports it on a schedule where it is there. */
  depth?(sourceMailbox: string): Promise<QueueDepth>
}

export interface MailboxDestinationOptions {
  /** Consumers see a dead message after this long: time to mend what broke, before it is replayed by itself. At once unless said. */
  delaySeconds?: number
}

const mailboxDestinationKeys = keysOf<MailboxDestinationOptions>({ delaySeconds: true })

/** Keeps dead messages in a mailbox, of whatever broker. A repeat adds nothing where the broker deduplicates. */
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

const letterDestinationKeys = keysOf<LetterDestinationOptions>({ queue: true, context: true })

/** States of letters that somebody still has to deal with. */
const openStates: State[] = ['pending', 'retrying', 'exhausted', 'parked']

/** Keeps dead messages as letters. A repeat adds nothing as long as the letter is kept. With `store`, their depth can be reported. */
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
    name: queue === undefined ? 'letters' : lettersOf(queue),
    keep: async (dead, thrown) => {
      const said = { context: context?.(dead) ?? {}, ...(queue === undefined ? {} : { queue }) }
      await capturer.capture(messageCapture(dead, thrown, said))
    },
    ...(store ? { depth: (mailbox: string) => measureLetters(store, queue ?? mailbox) } : {}),
  }
}

/** The name of a queue of letters where a mailbox could stand as well. */
export function lettersOf(queue: string): string {
  return `letters of ${queue}`
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
  const name = lettersOf(queue)
  return { name, depth: counts.get(queue) ?? 0, ...(oldestAt === undefined ? {} : { oldestAt }) }
}

/** `thing` and `option` name where it was given, as in "MainLoop" and "dlq.to". */
export function destinationOf(given: unknown, thing: string, option: string): Destination {
  if (isDestination(given)) return given
  if (isMailbox(given)) return mailboxDestination(given)
  throw wrongOption(thing, option, 'a mailbox, or a destination such as dlq.deadLetters()', given)
}

export function isDestination(value: unknown): value is Destination {
  return hasMethod(value, 'keep')
}

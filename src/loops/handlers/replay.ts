import { createHash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import { checkOneOf, keysOf } from '../../keys.ts'
import { lineage } from '../../letter/lineage.ts'
import { decodePayload } from '../../letter/payload.ts'
import type { Mailbox, MailboxResolver, SendOptions } from '../../mailbox.ts'
import { bounded, carried, carriedType } from '../../mailboxes/bounds.ts'
import {
  checkOptions,
  describeValue,
  hasMethod,
  isMailbox,
  listeningKeys,
  optionalFunction,
  wrongOption,
} from '../check-options.ts'
import type { DeadMessage } from '../dead-message.ts'
import type { DeadLetterHandler } from '../dlq-consumer.ts'
import { teller, type Listening } from '../events.ts'

export interface ReplayOptions extends Listening {
  /** Where the messages came from: one mailbox for all, or who finds it by its name. */
  source: Mailbox | MailboxResolver
  /** Knows the mailboxes that replies go to. Unless given, the name is passed on, whoever may know it. */
  replies?: MailboxResolver
  /** When `replies` does not know where the reply should go: fail, or send it without, which is told. It fails unless said. */
  unknownReplyTo?: 'refuse' | 'replay-without-reply'
  /** How often one message may be sent back, over all its lives. 3 unless said; then it is parked. */
  maxReplays?: number
  /** Gives the body to send in place of the one that failed. */
  transform?: (value: unknown, dead: DeadMessage) => unknown
}

const replayKeys = [
  ...listeningKeys,
  ...keysOf<Omit<ReplayOptions, keyof Listening>>({
    source: true,
    replies: true,
    unknownReplyTo: true,
    maxReplays: true,
    transform: true,
  }),
]
const renamedOptions = {
  reply_resolver: 'replies',
  replyResolver: 'replies',
  to: 'source',
  mailbox: 'source',
}

/** Rejects wrong options of whatever replays. `own` are the options that only `thing` has. */
export function checkReplayOptions(
  thing: string,
  options: ReplayOptions,
  own: readonly string[] = [],
  renamed: Readonly<Record<string, string>> = {},
): void {
  checkOptions(thing, options, [...replayKeys, ...own], { ...renamedOptions, ...renamed })
  const { source, replies, unknownReplyTo = 'refuse', maxReplays = 3, transform } = options
  if (!isMailbox(source) && !hasMethod(source, 'resolve'))
    throw wrongOption(thing, 'source', 'a mailbox, or a resolver of mailboxes', source)
  if (replies !== undefined && !hasMethod(replies, 'resolve'))
    throw wrongOption(thing, 'replies', 'a resolver of mailboxes', replies)
  checkOneOf('unknownReplyTo', unknownReplyTo, ['refuse', 'replay-without-reply'], {
    code: 'INVALID_CONFIG',
  })
  bounded('maxReplays', maxReplays, Infinity)
  optionalFunction(thing, 'transform', transform)
}

/** `id` is that of the new message. */
export type Replayed = { kind: 'replayed'; id: string } | { kind: 'refused'; why: string }

/**
 * Sends a dead message to its source again, with its reply address, its headers, and an account of its past. Done twice it is one message, where
 * the broker deduplicates. Rejects when it could not be sent.
 */
export async function replay(dead: DeadMessage, options: ReplayOptions): Promise<Replayed> {
  checkReplayOptions('replay', options)
  return sendReplay(dead, options)
}

/** The same for options that were checked. */
export async function sendReplay(dead: DeadMessage, options: ReplayOptions): Promise<Replayed> {
  const { maxReplays = 3, transform } = options
  if (dead.replays >= maxReplays)
    return { kind: 'refused', why: `replayed ${dead.replays} times already` }
  const source = await sourceOf(dead, options.source)
  const replyTo = await replyToOf(dead, options)
  const send: SendOptions = {
    id: replayId(dead),
    headers: carriedHeaders({
      ...dead.headers,
      [lineage.replays]: String(dead.replays + 1),
      [lineage.firstFailedAt]: dead.firstFailedAt,
      [lineage.originalId]: dead.originalId,
    }),
    ...(replyTo === undefined ? {} : { replyTo }),
  }
  if (transform) {
    const body = await transform(decodePayload(dead.body), dead)
    // A transform that changes its argument and forgets to return it must not send an empty body.
    if (body === undefined || typeof body === 'function')
      throw new RedriveError(
        'INVALID_INPUT',
        `transform returned ${describeValue(body)} for message ${dead.messageId}: return the body to send`,
      )
    return { kind: 'replayed', id: await source.send(body, send) }
  }
  const { bytes } = dead.body
  const contentType = carriedType(dead.body.contentType)
  return { kind: 'replayed', id: await source.send(bytes, { ...send, contentType }) }
}

/**
 * Replays every dead message. Those that cannot be read, or that may end their worker, are parked, unless `transform` changes them; and
 * so are those that came back too often.
 */
export function replayHandler(options: ReplayOptions): DeadLetterHandler {
  checkReplayOptions('replayHandler', options)
  return handlerOf(options)
}

/** The same for options that were checked. */
export function handlerOf(options: ReplayOptions): DeadLetterHandler {
  return async (dead) => {
    if (dead.hopeless && !options.transform) return { action: 'park', why: 'not fit to run again' }
    const replayed = await sendReplay(dead, options)
    if (replayed.kind === 'refused') return { action: 'park', why: replayed.why }
    return { action: 'replayed' }
  }
}

async function sourceOf(
  { sourceMailbox }: DeadMessage,
  source: Mailbox | MailboxResolver,
): Promise<Mailbox> {
  if (!('resolve' in source)) return source
  const found = await source.resolve(sourceMailbox)
  if (found) return found
  throw new RedriveError(
    'INVALID_INPUT',
    `nothing is known here of the mailbox ${sourceMailbox.slice(0, 100)} that the message came from: give a resolver that knows it`,
  )
}

async function replyToOf(dead: DeadMessage, options: ReplayOptions): Promise<string | undefined> {
  const { replies, unknownReplyTo = 'refuse' } = options
  const { replyTo } = dead
  if (replyTo === undefined || !replies || (await replies.resolve(replyTo))) return replyTo
  const error = new RedriveError(
    'REPLY_UNAVAILABLE',
    `nothing is known here of the mailbox ${replyTo.slice(0, 100)} that wants the reply`,
  )
  if (unknownReplyTo === 'refuse') throw error
  teller(options)({ type: 'trouble', during: `replay to ${dead.sourceMailbox}`, error })
  return undefined
}

/** Others put what they like into headers and ids: line breaks, where it is a stack. */
function carriedHeaders(headers: Record<string, string>): Record<string, string> {
  const all = Object.entries(headers).map(([name, text]) => [name, carried(text)] as const)
  return Object.fromEntries(all)
}

/**
 * Never the id that it had: the broker may still know that one, and would drop it as a repeat. The body is part of it, since senders may
 * use an id again for something else.
 */
function replayId({ sourceMailbox, originalId, messageId, replays, body }: DeadMessage): string {
  const life = JSON.stringify([sourceMailbox, originalId, messageId, replays + 1])
  return createHash('sha256').update(life).update(body.bytes).digest('hex').slice(0, 40)
}

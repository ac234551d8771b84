import { RedriveError } from '../../errors.ts'
import { checkOneOf, keysOf } from '../../check/keys.ts'
import { decodePayload } from '../../letter/payload.ts'
import type { Mailbox, MailboxResolver } from '../../mailbox.ts'
import { bounded } from '../../backends/bounds.ts'
import { sendReplay } from '../../mailboxes/replay.ts'
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
import type { DeadLetterHandler } from './handler.ts'
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
  return replayDead(dead, options)
}

/** The same for options that were checked. */
export async function replayDead(dead: DeadMessage, options: ReplayOptions): Promise<Replayed> {
  const { maxReplays = 3, transform } = options
  if (dead.replays >= maxReplays)
    return { kind: 'refused', why: `replayed ${dead.replays} times already` }
  const source = await sourceOf(dead, options.source)
  const replyTo = await replyToOf(dead, options)
  const { replyTo: _, ...rest } = dead
  const message = replyTo === undefined ? rest : { ...rest, replyTo }
  const changed = transform && (() => transformed(dead, transform))
  return { kind: 'replayed', id: await sendReplay(source, message, changed) }
}

/** The body to send. A transform that changes its argument and forgets to return it must not send an empty body. */
async function transformed(
  dead: DeadMessage,
  transform: NonNullable<ReplayOptions['transform']>,
): Promise<unknown> {
  const body = await transform(decodePayload(dead.body), dead)
  if (body !== undefined && typeof body !== 'function') return body
  throw new RedriveError(
    'INVALID_INPUT',
    `transform returned ${describeValue(body)} for message ${dead.messageId}: return the body to send`,
  )
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
    const replayed = await replayDead(dead, options)
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
  teller(options)({ type: 'error', during: `replay to ${dead.sourceMailbox}`, error })
  return undefined
}

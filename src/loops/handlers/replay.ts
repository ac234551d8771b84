import { RedriveError } from '../../errors.ts'
import { checkOneOf, keysOf } from '../../check/keys.ts'
import { decodePayload } from '../../letter/payload.ts'
import { hasMethods } from '../../letter/reading.ts'
import type { Mailbox, MailboxResolver } from '../../mailbox.ts'
import { bounded } from '../../backends/bounds.ts'
import { sendReplay } from '../../mailboxes/replay.ts'
import {
  checkOptions,
  describeValue,
  isMailbox,
  listenerKeys,
  optionalFunction,
  wrongOption,
} from '../check-options.ts'
import type { DeadMessage } from '../dead-message.ts'
import type { DeadLetterHandler } from './handler.ts'
import { createEmit, type Listeners } from '../events.ts'

export interface ReplayOptions extends Listeners {
  /** Where the messages came from: one mailbox for all, or a resolver that finds it by name. */
  source: Mailbox | MailboxResolver
  /** Resolves the mailboxes of replies. Default: the name is passed on unchecked. */
  replies?: MailboxResolver
  /**
   * What happens if `replies` does not know the mailbox: fail, or send without reply and report it.
   * Default: `refuse`.
   */
  unknownReplyTo?: 'refuse' | 'replay-without-reply'
  /**
   * How often one message may be replayed, over all its lives. After that it is parked. Default: 3.
   */
  maxReplays?: number
  /** Returns the body to send instead of the one that failed. */
  transform?: (value: unknown, dead: DeadMessage) => unknown
}

const replayKeys = [
  ...listenerKeys,
  ...keysOf<Omit<ReplayOptions, keyof Listeners>>({
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

/** Rejects invalid options of replays. `own` are the options that only `thing` has. */
export function checkReplayOptions(
  thing: string,
  options: ReplayOptions,
  own: readonly string[] = [],
  renamed: Readonly<Record<string, string>> = {},
): void {
  checkOptions(thing, options, [...replayKeys, ...own], { ...renamedOptions, ...renamed })
  const { source, replies, unknownReplyTo = 'refuse', maxReplays = 3, transform } = options
  if (!isMailbox(source) && !hasMethods(source, 'resolve'))
    throw wrongOption(thing, 'source', 'a mailbox, or a resolver of mailboxes', source)
  if (replies !== undefined && !hasMethods(replies, 'resolve'))
    throw wrongOption(thing, 'replies', 'a resolver of mailboxes', replies)
  checkOneOf('unknownReplyTo', unknownReplyTo, ['refuse', 'replay-without-reply'], {
    code: 'INVALID_CONFIG',
  })
  bounded('maxReplays', maxReplays, Infinity)
  optionalFunction(thing, 'transform', transform)
}

/** `id` is the id of the new message. */
export type Replayed = { kind: 'replayed'; id: string } | { kind: 'refused'; why: string }

/**
 * Sends a dead message to its source, with its reply address, its headers and its lineage. Sending
 * twice results in one message where the broker deduplicates. Rejects if it could not be sent.
 */
export async function replay(dead: DeadMessage, options: ReplayOptions): Promise<Replayed> {
  checkReplayOptions('replay', options)
  return replayDead(dead, options)
}

/** Like `replay`, for options that are already checked. */
export async function replayDead(dead: DeadMessage, options: ReplayOptions): Promise<Replayed> {
  const { maxReplays = 3, transform } = options
  if (dead.replays >= maxReplays)
    return { kind: 'refused', why: `already replayed ${dead.replays} times` }
  const source = await resolveSource(dead, options.source)
  const replyTo = await resolveReplyTo(dead, options)
  const { replyTo: _, ...rest } = dead
  const message = replyTo === undefined ? rest : { ...rest, replyTo }
  const changed = transform && (() => applyTransform(dead, transform))
  return { kind: 'replayed', id: await sendReplay(source, message, changed) }
}

/**
 * Returns the body to send. A transform that mutates its argument and forgets to return it must not
 * send an empty body.
 */
async function applyTransform(
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
 * Returns a handler that replays every dead message. Messages that cannot be decoded, or that may
 * kill their worker, are parked, unless there is a `transform`; messages that died too often are
 * parked too.
 */
export function replayHandler(options: ReplayOptions): DeadLetterHandler {
  checkReplayOptions('replayHandler', options)
  return toHandler(options)
}

/** Like `replayHandler`, for options that are already checked. */
export function toHandler(options: ReplayOptions): DeadLetterHandler {
  return async (dead) => {
    if (dead.hopeless && !options.transform) return { action: 'park', why: 'not fit to run again' }
    const replayed = await replayDead(dead, options)
    if (replayed.kind === 'refused') return { action: 'park', why: replayed.why }
    return { action: 'replayed' }
  }
}

async function resolveSource(
  { sourceMailbox }: DeadMessage,
  source: Mailbox | MailboxResolver,
): Promise<Mailbox> {
  if (!('resolve' in source)) return source
  const found = await source.resolve(sourceMailbox)
  if (found) return found
  throw new RedriveError(
    'INVALID_INPUT',
    `the mailbox ${sourceMailbox.slice(0, 100)} that the message came from is unknown: pass a resolver that knows it`,
  )
}

async function resolveReplyTo(
  dead: DeadMessage,
  options: ReplayOptions,
): Promise<string | undefined> {
  const { replies, unknownReplyTo = 'refuse' } = options
  const { replyTo } = dead
  if (replyTo === undefined || !replies || (await replies.resolve(replyTo))) return replyTo
  const error = new RedriveError(
    'REPLY_UNAVAILABLE',
    `the mailbox ${replyTo.slice(0, 100)} that expects the reply is unknown: pass a resolver that knows it`,
  )
  if (unknownReplyTo === 'refuse') throw error
  createEmit(options)({ type: 'error', during: `replay to ${dead.sourceMailbox}`, error })
  return undefined
}

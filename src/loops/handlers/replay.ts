import { RedriveError } from '../../errors.ts'
import { decodePayload } from '../../letter/payload.ts'
import type { Mailbox, MailboxResolver } from '../../mailbox.ts'
import { sendReplay } from '../../mailboxes/replay.ts'
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

/** `id` is that of the new message. */
export type Replayed = { kind: 'replayed'; id: string } | { kind: 'refused'; why: string }

/**
 * Sends a dead message to its source again, with its reply address, its headers, and an account of its past. Done twice it is one message, where
 * the broker deduplicates. Rejects when it could not be sent.
 */
export async function replay(dead: DeadMessage, options: ReplayOptions): Promise<Replayed> {
  const { maxReplays = 3, transform } = options
  if (dead.replays >= maxReplays)
    return { kind: 'refused', why: `replayed ${dead.replays} times already` }
  const source = await sourceOf(dead, options.source)
  const replyTo = await replyToOf(dead, options)
  const { replyTo: _, ...rest } = dead
  const message = replyTo === undefined ? rest : { ...rest, replyTo }
  const changed = transform && (() => transform(decodePayload(dead.body), dead))
  return { kind: 'replayed', id: await sendReplay(source, message, changed) }
}

/**
 * Replays every dead message. Those that cannot be read, or that may end their worker, are parked, unless `transform` changes them; and
 * so are those that came back too often.
 */
export function replayHandler(options: ReplayOptions): DeadLetterHandler {
  return async (dead) => {
    if (dead.hopeless && !options.transform) return { action: 'park', why: 'not fit to run again' }
    const replayed = await replay(dead, options)
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

import { systemClock } from '../../../src/clock/clock.ts'
import { connect } from '../../../src/connect/store.ts'
import type { DeadLetter, Failure } from '../../../src/letter/letter.ts'
import { readDeadMessage } from '../../../src/loops/dead-message.ts'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { openMailbox } from '../../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { shaOf } from '../plan.ts'
import { names } from './child.ts'
import type { DeadFact, ReplyFact } from './verify.ts'

export function readDeadMessages(url: string): Promise<DeadFact[]> {
  return inMailbox(url, names.dead, deadMessagesIn)
}

/** Removes and returns the dead messages of a mailbox. */
export async function deadMessagesIn(mailbox: Mailbox): Promise<DeadFact[]> {
  return (await drainMailbox(mailbox)).map((message) => {
    const dead = readDeadMessage(message, names.dead)
    return {
      id: dead.messageId,
      place: 'mailbox',
      sha: shaOf(dead.body.bytes),
      errorType: errorOf(dead.failure),
      deliveries: dead.deliveryCount,
    }
  })
}

export function readReplies(url: string): Promise<ReplyFact[]> {
  return inMailbox(url, names.replies, repliesIn)
}

/** Removes and returns the replies in a mailbox. */
export async function repliesIn(mailbox: Mailbox): Promise<ReplyFact[]> {
  return (await drainMailbox(mailbox)).map((message) => ({
    id: message.headers['redrive-in-reply-to'] ?? '',
    ok: !('error' in (message.value() as object)),
  }))
}

async function inMailbox<T>(
  url: string,
  name: string,
  work: (mailbox: Mailbox) => Promise<T>,
): Promise<T> {
  const mailbox = await openMailbox(url, { name })
  try {
    return await work(mailbox)
  } finally {
    await mailbox.close()
  }
}

async function drainMailbox(mailbox: Mailbox): Promise<Message[]> {
  const all: Message[] = []
  for (;;) {
    const some = await mailbox.receive({ max: 10, waitSeconds: 1 })
    if (some.length === 0) return all
    all.push(...some)
    await Promise.all(some.map((message) => message.acknowledge()))
  }
}

/** The dead messages that were stored as letters. */
export async function readDeadLetters(url: string): Promise<DeadFact[]> {
  const queue = await DeadLetterQueue.open(await connect(url, systemClock))
  try {
    return await deadLettersIn(queue)
  } finally {
    await queue.close()
  }
}

export async function deadLettersIn(queue: DeadLetterQueue): Promise<DeadFact[]> {
  const all: DeadFact[] = []
  for (let cursor: string | undefined, more = true; more;) {
    const from = cursor === undefined ? {} : { cursor }
    const page = await queue.find({ limit: 500, payload: true, ...from })
    all.push(...page.items.map(letterFact))
    cursor = page.cursor
    more = cursor !== undefined
  }
  return all
}

function letterFact({ source, payload, failure }: DeadLetter): DeadFact {
  const { messageId: id, deliveries } = source as Extract<DeadLetter['source'], { kind: 'mailbox' }>
  return {
    id,
    place: 'letters',
    sha: shaOf(payload.bytes),
    errorType: errorOf(failure),
    deliveries,
  }
}

function errorOf({ name, code }: Failure): string {
  return code === 'UNDECODABLE' ? code : name
}

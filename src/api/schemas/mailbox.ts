import { z } from 'zod'
import { breakerStates, loopKinds } from '../../letter/loop-status.ts'
import { timestamp } from './filter.ts'

const count = z.int().nonnegative()

export const loopStatus = z
  .strictObject({
    name: z.string(),
    kind: z.enum(loopKinds),
    mailbox: z.string().describe('The name of the mailbox that it receives from.'),
    broker: z.string().describe('The kind of broker, such as redis or rabbitmq.'),
    deadLetters: z
      .string()
      .exactOptional()
      .describe('Where dead or parked messages are stored. Absent: nowhere else.'),
    running: z.boolean(),
    counts: z
      .strictObject({
        received: count,
        processed: count,
        failed: count.describe('The message is delivered again, or was refused.'),
        dead: count.describe('Messages that were dead-lettered or parked.'),
      })
      .describe('Deliveries since the loop was created.'),
    breaker: z
      .strictObject({
        state: z.enum(breakerStates),
        until: timestamp.exactOptional().describe('When an open breaker lets a message run.'),
      })
      .exactOptional()
      .describe('Absent: the loop has no circuit breaker.'),
    lastActivityAt: timestamp
      .exactOptional()
      .describe('When it last received or finished a message.'),
    problem: z.string().exactOptional().describe('Why it receives nothing.'),
  })
  .meta({ id: 'Loop' })

/** A mailbox that loops of live processes receive from. */
export const mailboxView = z
  .strictObject({
    name: z.string(),
    broker: loopStatus.shape.broker,
    loops: z.array(
      loopStatus.omit({ mailbox: true, broker: true }).extend({
        worker: z.string().describe('The id of the process that runs the loop.'),
        host: z.string().exactOptional(),
      }),
    ),
  })
  .meta({ id: 'Mailbox' })
export type MailboxView = z.infer<typeof mailboxView>

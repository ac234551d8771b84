import type { Channel, ChannelModel, Message } from 'amqplib'
import type { Consumer, Supply } from './supply.ts'

/** All that lives and dies with one channel. Receipts begin with its key. */
export interface Session {
  readonly key: string
  readonly model: ChannelModel
  readonly channel: Channel
  readonly supply: Supply
  isLost: boolean
}

/** A message that has come and is not settled. */
export interface Arrived {
  message: Message
  session: Session
  /** What it came by, unless it was asked for. */
  consumer?: Consumer
}

/** Gives a message back to the head of the queue. The server counts that as a delivery. */
export function requeue({ session, message, consumer }: Arrived): void {
  if (consumer) consumer.used -= 1
  attempt(() => session.channel.nack(message, false, true))
}

/** Deletes a message. False: the channel is gone, and with it the right to. */
export function acknowledge({ session, message, consumer }: Arrived): boolean {
  if (consumer) consumer.used -= 1
  return attempt(() => session.channel.ack(message))
}

/** The client throws when the channel is closed. */
function attempt(act: () => void): boolean {
  try {
    act()
    return true
  } catch {
    return false
  }
}

import type { Channel, ChannelModel, Message } from 'amqplib'
import type { Consumer, Supply } from './supply.ts'

/** State that lives as long as one channel. Receipts start with its key. */
export interface Session {
  readonly key: string
  readonly model: ChannelModel
  readonly channel: Channel
  readonly supply: Supply
  isLost: boolean
}

/** A received message that is not settled. */
export interface ReceivedMessage {
  message: Message
  session: Session
  /** The consumer that received the message. Absent for a message fetched by `get`. */
  consumer?: Consumer
}

/** Returns a message to the head of the queue. The server counts that as a delivery. */
export function requeue({ session, message, consumer }: ReceivedMessage): void {
  if (consumer) consumer.used -= 1
  attempt(() => session.channel.nack(message, false, true))
}

/** Deletes a message. False: the channel is closed, so the delivery is no longer ours. */
export function acknowledge({ session, message, consumer }: ReceivedMessage): boolean {
  if (consumer) consumer.used -= 1
  return attempt(() => session.channel.ack(message))
}

/** The client throws if the channel is closed. */
function attempt(act: () => void): boolean {
  try {
    act()
    return true
  } catch {
    return false
  }
}

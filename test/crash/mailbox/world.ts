import type { Destination } from '../../../src/loops/destination.ts'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { overlaid } from './overlaid.ts'

/** What a loop is given: where requests come from, and where dead ones go. Failpoints, bugs and witnesses are laid over it. */
export interface World {
  requests: Mailbox
  /** Dead messages are kept in both, in turn. */
  dead: Destination
  letters: Destination
}

/** The same world, with every message and every keeping seen to. */
export function overWorld(
  { requests, dead, letters }: World,
  over: {
    message: (message: Message) => Message
    received?: (messages: readonly Message[]) => Promise<void>
    keep: (inner: Destination['keep']) => Destination['keep']
  },
): World {
  const kept = (destination: Destination): Destination =>
    overlaid(destination, { keep: over.keep((...args) => destination.keep(...args)) })
  const receive: Mailbox['receive'] = async (asked) => {
    const messages = (await requests.receive(asked)).map(over.message)
    await over.received?.(messages)
    return messages
  }
  return { requests: overlaid(requests, { receive }), dead: kept(dead), letters: kept(letters) }
}

import type { Destination } from '../../../src/loops/destination.ts'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { override } from '../override.ts'

/** The source and destinations of a loop. Failpoints, bugs and the ledger wrap them. */
export interface LoopParts {
  requests: Mailbox
  /** Dead messages go to both destinations, in turn. */
  dead: Destination
  letters: Destination
}

/** Wraps every received message and every write of a dead letter. */
export function wrapLoopParts(
  { requests, dead, letters }: LoopParts,
  over: {
    message: (message: Message) => Message
    received?: (messages: readonly Message[]) => Promise<void>
    keep: (inner: Destination['keep']) => Destination['keep']
  },
): LoopParts {
  const wrapDestination = (destination: Destination): Destination =>
    override(destination, { keep: over.keep((...args) => destination.keep(...args)) })
  const receive: Mailbox['receive'] = async (options) => {
    const messages = (await requests.receive(options)).map(over.message)
    await over.received?.(messages)
    return messages
  }
  return {
    requests: override(requests, { receive }),
    dead: wrapDestination(dead),
    letters: wrapDestination(letters),
  }
}

import type { DeadLetter } from '../../src/letter/letter.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import type { DeadLetterQueue } from '../../src/queue/queue.ts'

/** Runs a loop that dead-letters one message, and returns its letter. */
export async function deadLetterOne(dlq: DeadLetterQueue, requests: Mailbox): Promise<DeadLetter> {
  let letter: DeadLetter | undefined
  const off = dlq.on('captured', (event) => (letter = event.letter))
  await new MainLoop({
    requests,
    process: () => {
      throw new Error('no such customer')
    },
    dlq: { to: dlq.deadLetters(), policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
  }).run({ maxIterations: 1 })
  off()
  return letter!
}

import { sleep, type Clock } from '../../clock/clock.ts'
import { DLQPolicy } from '../../policy/dlq-policy.ts'
import { MainLoop } from '../../loops/main-loop.ts'
import { memoryMailbox } from '../../mailboxes/memory/memory.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'

interface Mail {
  to: string
  template: string | null
}

/** The queue of the letters, and the name of the mailbox. */
export const mailQueue = 'send-mail'
const pauseMs = 3000
const maxDeliveryCount = 2
/** Every so many messages, one has no template, so that no delivery of it can succeed. */
const poisonEvery = 12
const retryMs = 2000

/**
 * Sends messages to a mailbox in memory, and runs a loop that processes them. Some are poison
 * messages: the loop stores them as letters after two deliveries.
 */
export async function runMailbox(
  dlq: DeadLetterQueue,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const requests = memoryMailbox({ name: mailQueue, clock })
  const loop = new MainLoop<Mail>({
    name: 'mailer',
    requests,
    clock,
    backoff: { kind: 'fixed', delayMs: retryMs },
    dlq: new DLQPolicy({ mailbox: dlq.deadLetters(), maxDeliveryCount }),
    process: ({ to, template }) => {
      if (template === null) throw new TypeError(`the mail to ${to} has no template`)
      return { sent: to }
    },
  })
  dlq.reportLoops(loop)
  const running = loop.run()
  for (let count = 1; !signal.aborted; count++) {
    const template = count % poisonEvery === 3 ? null : 'order-shipped'
    await requests.send({ to: `customer-${count}@example.com`, template })
    await sleep(clock, pauseMs, signal)
  }
  await loop.shutdown()
  await running
}

import { memoryMailbox } from '../src/mailboxes/memory/memory.ts'
import { redisMailbox } from '../src/mailboxes/redis/redis.ts'
import {
  alertHandler,
  deadLetterName,
  DLQConsumer,
  dlqHealth,
  DLQPolicy,
  fixed,
  LoopGroup,
  MainLoop,
  type LoopResult,
  type Mailbox,
} from '../src/index.ts'

// Usage: node examples/redis-loop.ts redis://localhost:6379. Without a URL, mailboxes are in
// memory.
const url = process.argv[2]

interface Order {
  requestId: string
  amount: number
}

const known = new Map<string, Mailbox>()
const resolver = { resolve: (name: string) => known.get(name) }
async function open(name: string, retentionSeconds = 0): Promise<Mailbox> {
  const mailbox =
    url === undefined
      ? memoryMailbox({ name, resolver, retentionSeconds })
      : redisMailbox({ name, url, resolver, retentionSeconds })
  await mailbox.open()
  known.set(name, mailbox)
  return mailbox
}

const days = 86_400
const orders = await open('example-orders')
const deadLetters = await open(deadLetterName('example-orders'), 30 * days)
const replies = await open('example-replies')

const charging = new MainLoop<Order, string>({
  requests: orders,
  concurrency: 4,
  waitSeconds: 1,
  backoff: fixed(100), // short, to watch it; by default, a minute more after each failure
  dlq: {
    to: deadLetters,
    policy: new DLQPolicy({ maxDeliveryCount: 3, includeErrors: [RangeError] }),
  },
  process: ({ amount }, { attempt }) => {
    if (amount < 0) throw new RangeError('an amount cannot be negative')
    if (amount > 1000) throw new Error(`the bank does not answer (attempt ${attempt})`)
    return `charged ${amount}`
  },
})

const alerting = new DLQConsumer({
  mailbox: deadLetters,
  waitSeconds: 1,
  handler: alertHandler({
    notify: (dead) => {
      console.log(`alert: ${dead.requestId} is dead: ${dead.lastErrorType}: ${dead.lastError}`)
      if (++alerted === 2) resolveAlerted()
    },
  }),
})
let alerted = 0
const { promise: allAlerted, resolve: resolveAlerted } = Promise.withResolvers<void>()

const group = new LoopGroup({
  loops: [charging, alerting],
  healthPort: 0,
  checks: [() => dlqHealth(deadLetters, { threshold: 100 })],
  watchdogMs: 720_000,
})
const ended = group.run()

for (const [requestId, amount] of [
  ['small', 10],
  ['negative', -1],
  ['large', 5000],
] as const)
  await orders.send({ requestId, amount } satisfies Order, { replyTo: replies.name })

await allAlerted
const ready = await fetch(`http://127.0.0.1:${group.healthPort}/health/ready`)
console.log(`ready: ${ready.status}`)
for (let left = 3; left > 0;)
  for (const message of await replies.receive({ max: 10, waitSeconds: 5 })) {
    const { requestId, output, error } = message.value() as LoopResult<string>
    console.log(`reply to ${requestId}: ${output ?? error}`)
    await message.acknowledge()
    left--
  }
console.log(`everything has ended: ${await group.shutdown()}`)
await ended
for (const mailbox of known.values()) await mailbox.close()

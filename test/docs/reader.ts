// The names that the reader of a page is assumed to have. Code blocks are compiled against these
// declarations and run with these values. Names of Redrive are not here: each block imports them.
import { DeadLetterQueue, MainLoop, openMailbox, type Keep, type Rule } from 'redrive'
import { memoryStore } from 'redrive/stores/memory'
import type { Pipeline } from 'redrive/pipeline'

type Stub<Result> = (...given: unknown[]) => Result
const answer: Stub<Promise<string>> = async () => 'done'
const ignore: Stub<void> = () => {}
const sweepAll: Stub<Promise<{ status: 'completed' }>> = async () => ({ status: 'completed' })
const tryToSave: Stub<Promise<Error | undefined>> = async () => undefined
const setHeader: Stub<{ end: Stub<void> }> = () => ({ end: ignore })

const dlq = await DeadLetterQueue.open('memory:')
const { id } = await dlq.enqueue(
  { type: 'orders', payload: { amount: -42 } },
  new Error('rejected'),
)
const requests = await openMailbox('memory:#orders')
const [from, to] = [memoryStore(), memoryStore()]
await Promise.all([from.open(), to.open()])

const values = {
  dlq,
  id,
  from,
  to,
  requests,
  deadLetters: await openMailbox('memory:#orders-dlq'),
  samples: await openMailbox('memory:#samples'),
  deadSamples: await openMailbox('memory:#samples-dlq'),
  reviewQueue: await openMailbox('memory:#review'),
  charging: new MainLoop<Order, string>({ requests, process: answer }),
  postgres: memoryStore(),
  url: 'amqp://localhost',
  connection: { host: 'localhost' },
  dead: 'orders.dead',
  payments: { charge: answer },
  bank: { charge: answer },
  mailer: { send: answer },
  complete: answer,
  chargeCard: answer,
  refund: answer,
  sweepAll,
  tryToSave,
  cached: (): string => 'cached',
  page: ignore,
  ticket: ignore,
  client: { query: answer },
  error: new Error('the disk is full'),
  mail: { to: 'mia@example.com' },
  order: { id: 42 },
  prompt: 'hello',
  slackUrl: 'https://hooks.example.com/services/x',
  pagerDutyKey: 'a-routing-key',
  hookSecret: `whsec_${'hook'.repeat(11)}`,
  smtpUrl: 'smtps://mia:password@mail.example.com',
  secret: 'a secret of at least 32 characters',
  body: '{}',
  request: { headers: {} as Record<string, string> },
  response: { setHeader },
  ContentPolicyViolation: class extends Error {},
  ValidationError: class extends Error {},
  rules: [
    { name: 'voucher used', when: { code: 'voucher_used' }, category: 'permanent' },
  ] satisfies Rule[],
  keep: (async () => {}) satisfies Keep,
}
Object.assign(globalThis, values)

type Values = typeof values

declare global {
  interface Order {
    id: number
  }
  type Receipt = string
  type Prompt = string
  interface Mail {
    to: string
  }
  interface Row {
    name: string
  }
  interface Sweep {
    rule: string
  }
  const dlq: Values['dlq']
  const id: Values['id']
  const from: Values['from']
  const to: Values['to']
  const requests: Values['requests']
  const deadLetters: Values['deadLetters']
  const samples: Values['samples']
  const deadSamples: Values['deadSamples']
  const reviewQueue: Values['reviewQueue']
  const charging: Values['charging']
  const postgres: Values['postgres']
  const url: string
  const connection: Values['connection']
  const dead: string
  const payments: Values['payments']
  const bank: Values['bank']
  const mailer: Values['mailer']
  const complete: Values['complete']
  const chargeCard: Values['chargeCard']
  const refund: Values['refund']
  const sweepAll: Values['sweepAll']
  const tryToSave: Values['tryToSave']
  const cached: Values['cached']
  const page: Values['page']
  const ticket: Values['ticket']
  const client: Values['client']
  const error: Values['error']
  const mail: Values['mail']
  const order: Values['order']
  const prompt: Values['prompt']
  const slackUrl: string
  const pagerDutyKey: string
  const hookSecret: string
  const smtpUrl: string
  const secret: string
  const body: string
  const yaml: string
  const request: Values['request']
  const response: Values['response']
  const ContentPolicyViolation: Values['ContentPolicyViolation']
  const ValidationError: Values['ValidationError']
  const rules: Values['rules']
  const keep: Keep
  const pipeline: Pipeline
}

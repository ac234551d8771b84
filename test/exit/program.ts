// Opens what must be refused, in every possible way, and closes nothing. Usage: `program.ts
// REQUESTS` (JSON). Prints each refusal as a line of JSON, and finally the time from the last
// refusal to the exit. Never calls process.exit.
import { systemClock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import { RedriveError } from '../../src/errors.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import type { Tap } from '../../src/taps/tap.ts'

export interface Request {
  /** The number of the cell in the matrix. */
  cell: number
  /** `queue`: a store that is opened by a queue only, with these options. */
  open: 'store' | 'queue' | 'mailbox' | 'tap'
  url: string
  /** The store is only unreachable: a queue with a spool opens. */
  away?: boolean
  /** Options of the queue. */
  options?: QueueOptions
}

export interface Report {
  cell: number
  way: string
  code?: string
  message: string
}

/** Ways to open. None of them closes what it opened. */
function waysOf({ open, url, away, options }: Request): Record<string, () => Promise<unknown>> {
  switch (open) {
    case 'store':
      return {
        'by the driver': async () => (await connect(url, systemClock)).open(),
        'by a queue': () => DeadLetterQueue.open(url, { onStoreDown: 'fail' }),
        'by a queue with a spool': () =>
          away ? openWhileUnreachable(url) : DeadLetterQueue.open(url),
      }
    case 'queue':
      return { 'by a queue': () => DeadLetterQueue.open(url, options) }
    case 'mailbox':
      return {
        'by the driver': async () => (await mailboxAt(url)).open(),
        'by openMailbox': () => openMailbox(url),
      }
    case 'tap':
      return { 'by the tap': async () => (await tapAt(url)).start() }
  }
}

/**
 * A queue with a spool opens although its store is unreachable, and its health reports why. It is
 * closed, since it would wait for the store.
 */
async function openWhileUnreachable(url: string): Promise<never> {
  const dlq = await DeadLetterQueue.open(url)
  const { ok, problems } = await dlq.health()
  await dlq.close()
  throw new RedriveError('STORE_UNAVAILABLE', ok ? 'the queue is healthy' : problems.join())
}

async function mailboxAt(address: string): Promise<Mailbox> {
  const [broker = '', name = ''] = address.split('#')
  const given = { url: broker, name }
  const scheme = /^[a-z]+/.exec(broker)![0]
  if (scheme === 'memory')
    return (await import('../../src/mailboxes/memory/memory.ts')).memoryMailbox({ name })
  if (scheme === 'sqlite') {
    const { sqliteMailbox } = await import('../../src/mailboxes/sqlite/sqlite.ts')
    return sqliteMailbox({ name, path: broker.slice('sqlite:'.length) })
  }
  if (scheme === 'postgres')
    return (await import('../../src/mailboxes/postgres/postgres.ts')).postgresMailbox(given)
  if (scheme === 'redis')
    return (await import('../../src/mailboxes/redis/redis.ts')).redisMailbox(given)
  if (scheme === 'amqp')
    return (await import('../../src/mailboxes/rabbitmq/rabbitmq.ts')).rabbitmqMailbox(given)
  if (scheme === 'nats')
    return (await import('../../src/mailboxes/nats/nats.ts')).natsMailbox(given)
  if (scheme === 'sqs') return (await import('../../src/mailboxes/sqs/sqs.ts')).sqsMailbox(given)
  return (await import('../../src/mailboxes/kafka/kafka.ts')).kafkaMailbox(given)
}

async function tapAt(address: string): Promise<Tap> {
  const [broker = '', name = ''] = address.split('#')
  const given = { url: broker, keep: async () => {} }
  const scheme = /^[a-z]+/.exec(broker)![0]
  if (scheme === 'amqp')
    return (await import('../../src/taps/rabbitmq.ts')).rabbitmqTap({ ...given, queue: name })
  if (scheme === 'nats')
    return (await import('../../src/taps/nats.ts')).natsTap({ ...given, stream: name })
  if (scheme === 'sqs') return (await import('../../src/taps/sqs.ts')).sqsTap(given)
  return (await import('../../src/taps/kafka.ts')).kafkaTap({ ...given, topics: [name] })
}

let reportedMs = 0
for (const request of JSON.parse(process.argv[2]!) as Request[])
  for (const [way, act] of Object.entries(waysOf(request))) {
    const report = await act().then(
      () => ({ message: 'it opened' }),
      ({ code, message }: { code?: string; message: string }) => ({ code, message }),
    )
    reportedMs = systemClock.mono()
    console.log(JSON.stringify({ cell: request.cell, way, ...report }))
  }
process.once('exit', () =>
  console.log(JSON.stringify({ wentOnMs: systemClock.mono() - reportedMs })),
)

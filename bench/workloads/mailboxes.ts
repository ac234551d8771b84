import type { Mailbox } from '../../src/mailbox.ts'
import { backend, type Backend } from '../../test/servers/servers.ts'
import { median, rate, result, type Result, type Sizes } from '../harness.ts'
import { loops } from './loops.ts'
import { mailboxKinds, openPair, type MailboxKind } from './mailboxes/kinds.ts'
import { body, runWorkers, type Pair } from './mailboxes/pair.ts'

/** Number of messages in flight. */
const loads = [1, 64] as const

/**
 * Target: the share of the throughput of the client alone in the same round, called the same way.
 */
const atLeast = 0.6
/** Fewer messages suffice where each call is a commit. */
const slowShare = 0.1

const served: Partial<Record<MailboxKind, Backend>> = {
  postgres: 'postgres',
  redis: 'redis',
  rabbitmq: 'rabbitmq',
  nats: 'nats',
  kafka: 'kafka',
}

/** Throughput of mailboxes: send, receive and acknowledge. Default: all available brokers. */
export async function mailboxes(sizes: Sizes, named: readonly MailboxKind[]): Promise<Result[]> {
  const results: Result[] = []
  for (const kind of named.length > 0 ? named : mailboxKinds) {
    const server = served[kind]
    const missing = server && backend(server).missing
    if (missing !== undefined && named.length > 0) throw new Error(missing)
    log(missing ?? `${kind}: mailboxes`)
    if (missing === undefined) results.push(...(await measure(kind, sizes)))
  }
  if (named.length === 0 || named.includes('memory')) results.push(...(await loops(sizes)))
  return results
}

async function measure(kind: MailboxKind, sizes: Sizes): Promise<Result[]> {
  const pair = await openPair(kind)
  try {
    await measureLoad(pair, 1, sizes.sequentialMessages)
    await measureLoad(pair, 64, sizes.warmUp)
    const rounds: Measurement[][] = []
    for (let round = 0; round < sizes.rounds; round++) {
      const measurements: Measurement[] = []
      for (const load of loads)
        measurements.push(
          await measureLoad(
            pair,
            load,
            load === 1 ? sizes.sequentialMessages : sizes.concurrentMessages,
          ),
        )
      rounds.push(measurements)
      log(`  round ${round + 1}: ${measurements.map(formatMeasurement).join(', ')}`)
    }
    return loads.flatMap((load, at) =>
      resultsOf(
        kind,
        load,
        rounds.map((measurements) => measurements[at]!),
      ),
    )
  } finally {
    await pair.close()
  }
}

/** Messages per second, through the mailbox and by the client alone. */
interface Measurement {
  load: number
  mailbox: number
  raw?: number
  batched?: number
}

async function measureLoad(pair: Pair, load: number, messages: number): Promise<Measurement> {
  const { mailbox, raw } = pair
  // A single message has no batches.
  const batched = load > 1 ? pair.batched : undefined
  const fewer = Math.ceil(batched ? messages * slowShare : messages)
  const rawRate = raw && (await rateOf(fewer, () => raw(fewer, load)))
  const batchedRate = batched && (await rateOf(messages, () => batched(messages, load)))
  const found = await rateOf(messages, () => runWorkers(messages, load, () => trip(mailbox)))
  const rates: Measurement = { load, mailbox: found }
  if (rawRate !== undefined) rates.raw = rawRate
  if (batchedRate !== undefined) rates.batched = batchedRate
  return rates
}

/** Receives any message: each worker has sent one before, so there is one for every worker. */
async function trip(mailbox: Mailbox): Promise<void> {
  await mailbox.send(body())
  const [message] = await mailbox.receive({ waitSeconds: 20 })
  if (!message) throw new Error('no message arrived within 20 seconds')
  await message.acknowledge()
}

async function rateOf(messages: number, work: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await work()
  return rate(messages, performance.now() - startMs)
}

function resultsOf(kind: MailboxKind, load: number, measurements: Measurement[]): Result[] {
  const through = median(measurements.map(({ mailbox }) => mailbox))
  const compared = (by: 'raw' | 'batched', name: string, target?: Result['target']): Result[] => {
    const rates = measurements.flatMap((one) => one[by] ?? [])
    if (rates.length === 0) return []
    const ratios = measurements.map((one) => one.mailbox / one[by]!)
    return [
      result(kind, `${name} c${load}`, median(rates), '/s'),
      result(kind, `mailbox c${load} / ${name}`, median(ratios), 'x', target),
    ]
  }
  return [
    result(kind, `mailbox c${load}`, through, '/s'),
    ...compared('raw', 'client alone', { atLeast }),
    // For comparison, without a target: a mailbox is not called in batches.
    ...compared('batched', 'client with batches by hand'),
  ]
}

function formatMeasurement({ load, mailbox, raw, batched }: Measurement): string {
  const others = Object.entries({ client: raw, batches: batched }).flatMap(([name, one]) =>
    one === undefined ? [] : `${name} c${load} ${Math.round(one)}/s`,
  )
  return [...others, `mailbox c${load} ${Math.round(mailbox)}/s`].join(', ')
}

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

import { Consumer, Producer, type Message } from '@platformatic/kafka'
import { withLineage } from '../../src/pipeline/dead/lineage.ts'
import { PipelineNode } from '../../src/pipeline/node.ts'
import { replayNode } from '../../src/pipeline/replay/replay.ts'
import type { NodeInput } from '../../src/pipeline/graph/settings.ts'
import { deadBench, type DeadBench } from '../../test/pipeline/dead-records.ts'
import { pipelineBench, streamOf, type PipelineBench } from '../../test/pipeline/pipeline-bench.ts'
import { backend } from '../../test/servers/servers.ts'
import { median, result, type Result, type Sizes } from '../harness.ts'

const partitions = 4
const batchSize = 500
/** Minimum number of records: fewer would end during the start of the client. */
const minRecords = 50_000
/** One kilobyte, as in the other workloads. */
const text = 'x'.repeat(1024)

/** Records through an empty node, and replays of dead records, compared with the client alone. */
export async function pipeline(sizes: Sizes): Promise<Result[]> {
  const { url, missing } = backend('kafka')
  if (missing !== undefined) throw new Error(missing)
  const bench = pipelineBench(url)
  try {
    return [...(await measureNode(bench, url, sizes)), ...(await measureReplay(url, sizes))]
  } finally {
    await bench.close()
  }
}

async function measureNode(bench: PipelineBench, url: string, sizes: Sizes): Promise<Result[]> {
  const records = Math.max(sizes.bulk, minRecords)
  const topic = await bench.topic('through', partitions)
  for (let n = 0; n < records; n += batchSize)
    await bench.put(
      topic,
      Array.from({ length: batchSize }, (_, more) => ({
        key: `key-${(n + more) % 1000}`,
        partition: (n + more) % partitions,
        value: streamOf(`stream-${n + more}`, text),
      })),
    )
  const rates = await rounds(sizes, async (round) => ({
    client: await consumeAll(bench, url, topic, records, round),
    ours: await processAll(bench, url, topic, records, round),
  }))
  return [
    result('kafka', 'client alone: consume + commit', median(rates.client), '/s'),
    result('kafka', 'node that does nothing', median(rates.ours), '/s'),
    result('kafka', 'node / client alone', ratio(rates), 'x', { atLeast: 0.6 }),
  ]
}

/** Measures each variant in every round. The first round is a warm-up and does not count. */
async function rounds<K extends string>(
  sizes: Sizes,
  measure: (round: number) => Promise<Record<K, number>>,
): Promise<Record<K, number[]>> {
  const found: Record<K, number>[] = []
  for (let round = 0; round <= sizes.rounds; round++) {
    const rates = await measure(round)
    if (round === 0) continue
    found.push(rates)
    const parts = Object.entries<number>(rates).map(
      ([what, rate]) => `${what} ${rate.toFixed(0)}/s`,
    )
    log(`  round ${round}: ${parts.join(', ')}`)
  }
  const names = Object.keys(found[0] ?? {}) as K[]
  const all = names.map((name) => [name, found.map((rates) => rates[name])])
  return Object.fromEntries(all) as Record<K, number[]>
}

function ratio({ ours, client }: Record<'ours' | 'client', number[]>): number {
  return median(ours.map((rate, at) => rate / client[at]!))
}

/** Measures from the first record to the last commit. Offsets are committed every 500 records. */
async function consumeAll(
  bench: PipelineBench,
  url: string,
  topic: string,
  records: number,
  round: number,
): Promise<number> {
  const settings = { clientId: bench.name, bootstrapBrokers: url.split(',') }
  const consumer = new Consumer({ ...settings, groupId: `${bench.name}.raw.${round}` })
  const stream = await consumer.consume({ topics: [topic], mode: 'earliest', autocommit: false })
  const last = new Map<number, Message>()
  const commit = async (): Promise<void> => {
    await Promise.all([...last.values()].map(async (message) => message.commit()))
    last.clear()
  }
  let startMs = 0
  let count = 0
  for await (const message of stream) {
    if (count === 0) startMs = performance.now()
    last.set(message.partition, message)
    if (++count % batchSize === 0) await commit()
    if (count === records) break
  }
  await commit()
  const tookMs = performance.now() - startMs
  await stream.close()
  await consumer.close(true)
  return records / (tookMs / 1000)
}

async function processAll(
  bench: PipelineBench,
  url: string,
  topic: string,
  records: number,
  round: number,
): Promise<number> {
  const done = Promise.withResolvers<void>()
  let startMs = 0
  let count = 0
  const node = new PipelineNode({
    url,
    groupId: `${bench.name}.node.${round}`,
    node: { ...nodeInput(bench, topic), concurrency: 64 },
    module: () => {
      if (startMs === 0) startMs = performance.now()
      return undefined
    },
    onEvent: ({ type }) => {
      if (type === 'routed' && ++count === records) done.resolve()
    },
  })
  await node.start()
  await done.promise
  await node.stop()
  return records / ((performance.now() - startMs) / 1000)
}

function nodeInput(bench: PipelineBench, inputTopic: string): NodeInput {
  return {
    cluster: bench.name,
    node: 'bench',
    inputTopic,
    partitions,
    dlq: { topic: `${bench.name}.dead`, quarantineTopic: `${bench.name}.quarantine` },
  }
}

/** Each round has new dead records, since a record is replayed only once. */
async function measureReplay(url: string, sizes: Sizes): Promise<Result[]> {
  const records = Math.max(sizes.bulk, minRecords)
  const rates = await rounds(sizes, async () => {
    const bench = await deadBench(url)
    try {
      return {
        client: await produceAll(bench, url, records, 'bare'),
        same: await produceAll(bench, url, records, 'same'),
        ours: await replayAll(bench, records),
      }
    } finally {
      await bench.close()
    }
  })
  const { ours, same } = rates
  return [
    result('kafka', 'client alone: produce', median(rates.client), '/s'),
    result('kafka', 'client alone: produce with the header of a replay', median(same), '/s'),
    result('kafka', 'replay', median(ours), '/s'),
    result('kafka', 'replay / client alone', ratio(rates), 'x', { atLeast: 0.5 }),
    result('kafka', 'replay / client with the header', ratio({ ours, client: same }), 'x'),
  ]
}

/** Produces records, 500 per request: the same as a replay, with or without its lineage header. */
async function produceAll(
  bench: DeadBench,
  url: string,
  records: number,
  which: 'same' | 'bare',
): Promise<number> {
  const settings = { clientId: bench.name, bootstrapBrokers: url.split(',') }
  const producer = new Producer({ ...settings, idempotent: true, acks: -1 })
  const topic = await bench.topic(which, 2)
  const value = streamOf('stream', text)
  const lineage = { reprocessed: 1, firstFailedMs: Date.now(), dead: 'x'.repeat(36), replay: 'id' }
  const all = which === 'same' ? withLineage([], lineage) : []
  const headers = new Map(all.map(([name, text]) => [name, text ?? Buffer.alloc(0)]))
  const startMs = performance.now()
  for (let n = 0; n < records; n += batchSize) {
    const messages = Array.from({ length: batchSize }, (_, more) => ({
      topic,
      key: Buffer.from(`key-${n + more}`),
      value,
      headers,
    }))
    await producer.send({ messages, acks: -1 })
  }
  const tookMs = performance.now() - startMs
  await producer.close()
  return records / (tookMs / 1000)
}

async function replayAll(bench: DeadBench, records: number): Promise<number> {
  for (let n = 0; n < records; n += batchSize)
    await bench.dies(
      Array.from({ length: batchSize }, (_, more) => ({
        id: `stream-${n + more}`,
        value: streamOf(`stream-${n + more}`, text),
        key: `key-${n + more}`,
        offset: n + more,
      })),
      (n / batchSize) % 2,
    )
  const startMs = performance.now()
  const { sent } = await replayNode({ cluster: bench.cluster, settings: bench.settings })
  if (sent !== records) throw new Error(`${sent} of ${records} were replayed`)
  return records / ((performance.now() - startMs) / 1000)
}

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

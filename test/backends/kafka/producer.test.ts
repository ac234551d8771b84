import {
  kGetApi,
  NumericMap,
  produceV11,
  type API,
  type Connection,
  type MessageRecord,
  type Writer,
} from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { QuickProducer } from '../../../src/backends/kafka/producer.ts'
import { pipelineBench, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import { backend } from '../../servers/servers.ts'
import { asks, lossyWay } from './lossy.ts'

const { url, missing } = backend('kafka')
const nothing = null as unknown as Buffer

describe.skipIf(missing)('QuickProducer', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  const closing: (() => Promise<void> | void)[] = []

  const producer = (at = url, more: { requestTimeout?: number } = {}): QuickProducer => {
    const settings = { clientId: bench.name, bootstrapBrokers: [at], retryDelay: 50, ...more }
    const made = new QuickProducer({ ...settings, idempotent: true, retries: 20 })
    closing.unshift(() => made.close(true))
    return made
  }

  const texts = async (topic: string): Promise<string[]> =>
    (await bench.read(topic)).map(({ value }) => value.toString())

  beforeEach(() => {
    bench = pipelineBench(url)
  })

  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
    await bench.close()
  })

  it('asks for the same as the client, byte for byte', async () => {
    const api = await new Promise<API<unknown[], unknown>>((resolve, reject) =>
      producer()[kGetApi]<unknown[], unknown>('Produce', (error, found) =>
        found ? resolve(found) : reject(error ?? new Error('none')),
      ),
    )
    const messages = (): MessageRecord[] =>
      ['a', 'b'].flatMap((topic) =>
        [0, 1, 0, 1].map((partition, n) => ({
          topic,
          partition,
          key: Buffer.from(`k${n}`),
          value: n === 3 ? nothing : Buffer.from(`v${n}`),
          headers: new Map([[Buffer.from('h'), Buffer.from('')]]),
          timestamp: BigInt(1_700_000_000_000 + n),
        })),
      )
    const options = {
      transactionalId: 'tx',
      producerId: 7n,
      producerEpoch: 2,
      sequences: new NumericMap([['b:1', 40]]),
    }
    let ours: Writer | undefined
    const connection = {
      send: (_key: number, _version: number, create: () => Writer) => (ours = create()),
    }
    api(connection as unknown as Connection, -1, 5000, messages(), options)
    expect(ours?.buffer).toEqual(produceV11.createRequest(-1, 5000, messages(), options).buffer)
  })

  it('sends what there is, as it is', async () => {
    const topic = await bench.topic('kept', 2)
    const headers = new Map([
      [Buffer.from('b'), Buffer.from('1')],
      [Buffer.from('a'), Buffer.from('')],
      [Buffer.from('b'), Buffer.from('2')],
    ])
    const key = Buffer.from('k')
    const messages = [
      { topic, partition: 1, key, value: Buffer.from('v'), headers, timestamp: 1_700_000_000_005n },
      { topic, partition: 1, key, value: nothing },
      { topic, partition: 1, value: Buffer.alloc(0), timestamp: 1_700_000_000_003n },
      { topic, partition: 0, value: Buffer.alloc(200_000, 'x') },
    ]
    await producer().send({ messages, acks: -1 })
    const [alone, ...found] = await bench.read(topic)
    expect(alone).toMatchObject({ partition: 0, key: undefined, value: Buffer.alloc(200_000, 'x') })
    expect(found).toMatchObject([
      { offset: 0, key, value: Buffer.from('v'), timestampMs: 1_700_000_000_005 },
      { offset: 1, key, value: Buffer.alloc(0), headers: [] },
      { offset: 2, key: undefined, value: Buffer.alloc(0), timestampMs: 1_700_000_000_003 },
    ])
    expect(found[0]?.headers.map((pair) => pair.map(String))).toEqual([
      ['b', '1'],
      ['a', ''],
      ['b', '2'],
    ])
  })

  it('sends again under the same number what got no answer, so that it lies there once', async () => {
    const topic = await bench.topic('once')
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const made = producer(way.url, { requestTimeout: 1000 })
    const send = async (text: string): Promise<void> => {
      const value = Buffer.from(text)
      await made.send({
        messages: [
          { topic, value },
          { topic, value },
        ],
        acks: -1,
      })
    }
    await send('a')
    way.lose(asks.produce)
    const late = send('b')
    await expect.poll(() => way.lost(), { timeout: 10_000 }).toBeGreaterThan(0)
    way.heal()
    await late
    await send('c')
    expect(await texts(topic)).toEqual(['a', 'a', 'b', 'b', 'c', 'c'])
  })

  it('counts on over many sends, to several partitions', async () => {
    const topic = await bench.topic('counted', 3)
    const made = producer()
    for (let n = 0; n < 60; n++) {
      const messages = Array.from({ length: 1 + (n % 5) }, (_, more) => ({
        topic,
        partition: (n * more) % 3,
        value: Buffer.from(`${n}.${more}`),
      }))
      await made.send({ messages, acks: -1 })
    }
    const found = await bench.read(topic)
    expect(found).toHaveLength(180)
    expect(new Set(found.map(({ value }) => value.toString())).size).toBe(180)
  })
})

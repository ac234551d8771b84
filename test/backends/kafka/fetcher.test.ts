import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Fetcher } from '../../../src/backends/kafka/fetcher.ts'
import type { Written } from '../../../src/backends/kafka/record.ts'
import { Sender } from '../../../src/backends/kafka/sender.ts'
import { pipelineBench, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('kafka')
const ignore = (): void => {}

describe.skipIf(missing)('Fetcher', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  let fetcher: Fetcher

  beforeEach(() => {
    bench = pipelineBench(url)
    const { cluster, name: groupId } = bench
    fetcher = new Fetcher({ cluster, groupId, onError: ignore, well: ignore })
  })

  afterEach(async () => {
    await fetcher.close()
    await bench.close()
  })

  it('reads for several at the same time', async () => {
    const topic = await bench.topic('read', 2)
    for (const partition of [0, 1])
      await bench.put(topic, [{ value: Buffer.from(`in ${partition}`), partition }])
    const asked = Array.from({ length: 20 }, (_, n) => n % 2)
    const found = await Promise.all(asked.map((partition) => fetcher.read({ topic, partition }, 0)))
    expect(found.map(({ records }) => records.map(({ value }) => value.toString()))).toEqual(
      asked.map((partition) => [`in ${partition}`]),
    )
  })

  it('tells a record without a value from one with an empty value', async () => {
    const topic = await bench.topic('read')
    const sender = new Sender(bench.cluster)
    for (const value of [null, Buffer.alloc(0)]) {
      const written = { key: Buffer.from('key'), value, headers: new Map() } as Written
      await sender.send({ topic, partition: 0, written })
    }
    await sender.close()
    const { records } = await fetcher.read({ topic, partition: 0 }, 0)
    const found = records.map(({ value, isNull = false }) => [value.length, isNull])
    expect(found).toEqual([
      [0, true],
      [0, false],
    ])
  })

  it('gives headers as they were sent, those without a value and those of one name', async () => {
    const topic = await bench.topic('read')
    const headers = [
      ['a', Buffer.from('1')],
      ['none', null],
      ['a', Buffer.alloc(0)],
    ] as const
    const sender = new Sender(bench.cluster)
    const sent = new Map(headers.map(([name, value]) => [Buffer.from(name), value]))
    await sender.send({ topic, written: { value: Buffer.from('x'), headers: sent } })
    await sender.close()
    const [record] = (await fetcher.read({ topic, partition: 0 }, 0)).records
    expect(record?.headers.map(([name, value]) => [name.toString(), value])).toEqual(headers)
    expect(record).not.toHaveProperty('isAppendTime')
  })

  it('says when a timestamp is the time of the broker', async () => {
    const topic = await bench.topic('read', 1, { 'message.timestamp.type': 'LogAppendTime' })
    await bench.put(topic, [{ value: Buffer.from('a') }])
    const [record] = (await fetcher.read({ topic, partition: 0 }, 0)).records
    expect(record?.isAppendTime).toBe(true)
  })

  it('goes on reading after what went wrong', async () => {
    const topic = await bench.topic('read')
    await bench.put(topic, [{ value: Buffer.from('a') }])
    const wrong = fetcher.read({ topic, partition: 0 }, 99)
    const right = fetcher.read({ topic, partition: 0 }, 0)
    await expect(wrong).rejects.toThrow()
    expect((await right).records).toHaveLength(1)
  })
})

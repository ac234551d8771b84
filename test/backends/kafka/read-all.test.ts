import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { pipelineBench, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import { backend } from '../../servers/servers.ts'
import { textsIn } from './texts-in.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('readAll', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  let topic: string
  const closing: (() => Promise<void>)[] = []

  beforeEach(async () => {
    bench = pipelineBench(url)
    topic = await bench.topic('read')
  })

  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
    await bench.close()
  })

  /** One record of a transaction that is open, and one behind it. */
  const opened = async (): Promise<{ commit: () => Promise<void> }> => {
    const producer = bench.cluster.producer({ transactionalId: `${bench.name}.tx` })
    closing.push(async () => producer.close(true))
    const transaction = await producer.beginTransaction()
    const message = { topic, partition: 0, value: Buffer.from('open') }
    await transaction.send({ messages: [message], acks: -1 })
    await bench.put(topic, [{ value: Buffer.from('behind') }])
    return { commit: () => transaction.commit() }
  }

  const read = (cluster: Cluster): Promise<string[]> => textsIn(cluster, { topic, partition: 0 })

  it('waits for the end of a transaction, and reads what lies behind it', async () => {
    const { commit } = await opened()
    const reading = read(bench.cluster)
    await commit()
    expect(await reading).toEqual(['open', 'behind'])
  })

  it('refuses to leave out what lies behind a transaction that does not end', async () => {
    const { commit } = await opened()
    const hurried = new Cluster({ url, clock: systemClock, timeoutMs: 3000, clientId: bench.name })
    await expect(read(hurried)).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
      message: expect.stringContaining('a transaction is open in partition 0') as string,
    })
    await commit()
  })
})

import { ConfigResourceTypes } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import type { Mailbox, Message } from '../../../src/mailbox.ts'
import { backend } from '../../servers/servers.ts'
import { kafkaBench, type KafkaBench } from './kafka-bench.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('kafkaMailbox', { timeout: 60_000 }, () => {
  let bench: KafkaBench
  beforeEach(() => {
    bench = kafkaBench(url)
  })
  afterEach(() => bench.close())

  const take = async (mailbox: Mailbox, count: number): Promise<Message[]> => {
    const taken: Message[] = []
    while (taken.length < count) {
      const max = Math.min(10, count - taken.length)
      const batch = await mailbox.receive({ max, waitSeconds: 20, visibilitySeconds: 600 })
      expect(batch, `${count} come, not ${taken.length}`).not.toEqual([])
      taken.push(...batch)
    }
    return taken
  }
  const values = (messages: Message[]): unknown[] => messages.map((message) => message.value())

  it('creates a topic without retention, whatever the default of the cluster', async () => {
    const mailbox = await bench.open()
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: bench.topic }]
    const [described] = await bench.admin.describeConfigs({ resources })
    const configs = new Map(described!.configs.map(({ name, value }) => [name, value]))
    const expected = { 'retention.ms': '-1', 'retention.bytes': '-1', 'cleanup.policy': 'delete' }
    for (const [name, value] of Object.entries(expected)) expect(configs.get(name)).toBe(value)
    expect(await mailbox.health()).toMatchObject({ ok: true, checks: { retention: 'for ever' } })
  })

  it('reports an existing topic that deletes messages', async () => {
    const configs = [{ name: 'retention.ms', value: '604800000' }]
    await bench.admin.createTopics({ topics: [bench.topic], partitions: 1, replicas: 1, configs })
    const { ok, problems } = await (await bench.open()).health()
    expect(ok).toBe(false)
    expect(problems).toEqual([
      expect.stringContaining('(retention.ms=604800000): set retention.ms=-1'),
    ])
  })

  it('expires messages by the age of their records, also those of other producers', async () => {
    const mailbox = await bench.open({ retentionSeconds: 86_400 })
    const counts: number[] = []
    mailbox.on('expired', ({ count }) => counts.push(count))
    const timestamp = BigInt(systemClock.now() - 30 * 86_400_000)
    const old = { topic: bench.topic, value: Buffer.from('old'), timestamp }
    await bench.producer.send({ messages: [old, old] })
    await mailbox.send('fresh')
    expect(values(await take(mailbox, 1))).toEqual(['fresh'])
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2)
  })

  it('commits the offset up to the first message that is not acknowledged', async () => {
    const mailbox = await bench.open()
    for (let n = 0; n < 5; n++) await mailbox.send(n)
    const [a, b, c, d, e] = await take(mailbox, 5)
    await d!.acknowledge()
    await b!.acknowledge()
    expect(await bench.committed()).toEqual([0])
    await a!.acknowledge()
    expect(await bench.committed()).toEqual([2])
    await c!.acknowledge()
    expect(await bench.committed()).toEqual([4])
    await e!.acknowledge()
    expect(await bench.committed()).toEqual([5])
  })

  it('does not redeliver messages acknowledged out of order before a restart, and counts deliveries of the others', async () => {
    const mailbox = await bench.open()
    for (let n = 0; n < 6; n++) await mailbox.send(n)
    const taken = await take(mailbox, 5)
    for (const n of [1, 3]) await taken[n]!.acknowledge()
    await mailbox.close()
    const again = await bench.open()
    expect(await again.approximateCount()).toBe(4)
    const rest = await take(again, 4)
    expect(values(rest)).toEqual([0, 2, 4, 5])
    expect(rest.map(({ deliveries }) => deliveries)).toEqual([2, 2, 2, 1])
  })

  it('does not let a delayed message hold up the committed offset', async () => {
    const mailbox = await bench.open()
    await mailbox.send('much later', { delaySeconds: 3600 })
    await Promise.all(Array.from({ length: 1200 }, (_, n) => mailbox.send(n)))
    for (let left = 1200; left > 0;) {
      const batch = await take(mailbox, Math.min(left, 100))
      await Promise.all(batch.map((message) => message.acknowledge()))
      left -= batch.length
    }
    await mailbox.send('the last')
    const [last] = await take(mailbox, 1)
    await last!.acknowledge()
    const [committed] = await bench.committed()
    expect(committed).toBeGreaterThan(1200)
    expect(await mailbox.approximateCount()).toBe(1)
    const { messages } = await mailbox.browse!()
    expect(messages.map(({ deliveries }) => deliveries)).toEqual([0])
  })

  it('delivers messages of other producers and nacks them with their headers and key', async () => {
    const mailbox = await bench.open()
    const headers = new Map([
      [Buffer.from('content-type'), Buffer.from('text/plain')],
      [Buffer.from('trace'), Buffer.from('one')],
      [Buffer.from('trace'), Buffer.from('two')],
    ])
    const key = Buffer.from('k')
    const value = Buffer.from('from elsewhere')
    await bench.producer.send({ messages: [{ topic: bench.topic, key, value, headers }] })
    const [first] = await take(mailbox, 1)
    expect(first).toMatchObject({ id: `${bench.topic}:0:0`, deliveries: 1, failures: 0 })
    expect(first!.value()).toBe('from elsewhere')
    expect(first!.headers).toEqual({ 'content-type': 'text/plain', trace: 'one, two' })
    await first!.nack()
    const [second] = await take(mailbox, 1)
    expect(second).toMatchObject({ id: first!.id, deliveries: 2, failures: 1 })
    expect(second!.enqueuedAt).toBe(first!.enqueuedAt)
    expect(second!.headers).toEqual(first!.headers)
  })

  it('limits the delay of a record to the longest allowed delay', async () => {
    const longestMs = 43_200_000
    const timer: Clock['timer'] = (ms, fire) => systemClock.timer(ms === longestMs ? 0 : ms, fire)
    const mailbox = await bench.open({ clock: { ...systemClock, timer } })
    const meta = { id: 'far', type: 'text/plain', notBeforeMs: 8e15 }
    const headers = new Map([[Buffer.from('redrive'), Buffer.from(JSON.stringify(meta))]])
    const value = Buffer.from('after all')
    await bench.producer.send({ messages: [{ topic: bench.topic, value, headers }] })
    expect(values(await take(mailbox, 1))).toEqual(['after all'])
  })

  it('rejects the receipts of a member that was removed from the group', async () => {
    const mailbox = await bench.open({ sessionMs: 30_000 })
    await mailbox.send('a')
    await mailbox.send('b')
    const [a, b] = await take(mailbox, 2)
    const group = (await bench.admin.describeGroups({ groups: [bench.topic] })).get(bench.topic)
    const members = [...group!.members.keys()].map((memberId) => ({ memberId }))
    await bench.admin.removeMembersFromConsumerGroup({ groupId: bench.topic, members })
    await expect(a!.acknowledge()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    await expect(b!.nack()).rejects.toMatchObject({ code: 'RECEIPT_EXPIRED' })
    expect(await mailbox.approximateCount()).toBe(2)
    const again = await take(mailbox, 2)
    expect(again.map(({ deliveries }) => deliveries)).toEqual([2, 2])
  })

  it('shares partitions between handles and assigns all to the last one', async () => {
    const one = await bench.open({ partitions: 4 })
    const other = await bench.open()
    const received: unknown[] = []
    let failedAcks = 0
    const stop = new AbortController()
    const work = async (mailbox: Mailbox, signal: AbortSignal, mine: unknown[]): Promise<void> => {
      while (!signal.aborted)
        for (const message of await mailbox.receive({ max: 10, waitSeconds: 20, signal })) {
          received.push(message.value())
          // Fails if the partition moved to the other handle meanwhile: that handle receives the
          // message again, unless the acknowledgement was committed before.
          await message.acknowledge().then(
            () => mine.push(message.value()),
            () => (failedAcks += 1),
          )
        }
    }
    const [byOne, byOther]: unknown[][] = [[], []]
    const first = work(one, stop.signal, byOne!)
    const leave = new AbortController()
    const second = work(other, leave.signal, byOther!)
    let sent = 0
    const sendUntil = async (isEnough: () => boolean): Promise<void> => {
      while (!isEnough()) await Promise.all(Array.from({ length: 8 }, () => one.send(sent++)))
    }
    await sendUntil(() => byOne!.length > 50 && byOther!.length > 50)
    leave.abort()
    await second
    await other.close()
    const before = byOne!.length
    await sendUntil(() => byOne!.length > before + 100)
    await expect.poll(() => one.approximateCount()).toBe(0)
    stop.abort()
    await first
    expect(new Set(received).size).toBe(sent)
    expect(received.length).toBeLessThanOrEqual(sent + failedAcks)
  })

  it('keeps its deliveries when another handle joins', async () => {
    const one = await bench.open({ partitions: 1 })
    await one.send('held')
    const [held] = await take(one, 1)
    const other = await bench.open()
    const receiving = other.receive({ waitSeconds: 3 })
    const group = async (): Promise<unknown> => {
      const groups = await bench.admin.describeGroups({ groups: [bench.topic] })
      const { members, state } = groups.get(bench.topic)!
      return [state.toLowerCase(), members.size]
    }
    await expect.poll(group).toEqual(['stable', 2])
    await held!.acknowledge()
    expect(await receiving).toEqual([])
    expect(await bench.committed()).toEqual([1])
  })

  it('purges all partitions', async () => {
    const mailbox = await bench.open({ partitions: 3 })
    for (let n = 0; n < 9; n++) await mailbox.send(n)
    expect(await mailbox.purge()).toBe(9)
    expect(await mailbox.approximateCount()).toBe(0)
    await mailbox.send('after')
    expect(values(await take(mailbox, 1))).toEqual(['after'])
  })

  it('rejects a message that is too large with its headers', async () => {
    const mailbox = await bench.open()
    const headers = Object.fromEntries(
      Array.from({ length: 10 }, (_, n) => [`h${n}`, 'x'.repeat(8000)]),
    )
    const body = new Uint8Array(mailbox.powers.maxBodyBytes)
    await expect(mailbox.send(body, { headers })).rejects.toMatchObject({ code: 'TOO_LARGE' })
  })

  it('rejects in time when there is no broker', async () => {
    const away = bench.open({ url: '127.0.0.1:1', timeoutMs: 2000 })
    await expect(away).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
  })
})

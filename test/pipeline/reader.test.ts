import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { Cluster } from '../../src/backends/kafka/cluster.ts'
import { Transactor } from '../../src/backends/kafka/transactor.ts'
import { Reader, type ReaderOptions } from '../../src/pipeline/reader.ts'
import { apiKeys, lossyProxy } from '../backends/kafka/lossy-proxy.ts'
import { backend } from '../servers/servers.ts'
import { pipelineBench, type PipelineBench } from './pipeline-bench.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('Reader', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  let topic: string
  const readers: Reader[] = []

  beforeEach(async () => {
    bench = pipelineBench(url)
    topic = await bench.topic('in', 2)
  })

  afterEach(async () => {
    for (const reader of readers.splice(0)) await reader.stop(0)
    await bench.close()
  })

  const group = (): string => `${bench.name}.group`

  const started = (work: ReaderOptions['work'], more: Partial<ReaderOptions> = {}): Reader => {
    const reader = new Reader({
      cluster: bench.cluster,
      groupId: group(),
      topics: [topic],
      sessionMs: 10_000,
      concurrency: 8,
      aloneFrom: 2,
      drainMs: 1000,
      work,
      onError: () => {},
      ...more,
    })
    readers.push(reader)
    reader.start()
    return reader
  }

  /** Another reader, and its records with their deliveries. */
  const startedAgain = (): [value: string, deliveries: number][] => {
    const again: [string, number][] = []
    started(async ({ value }, { deliveries }) => {
      again.push([value.toString(), deliveries])
      return nothing
    })
    return again
  }

  const put = (count: number, key?: (n: number) => string): Promise<void> =>
    bench.put(
      topic,
      Array.from({ length: count }, (_, n) => ({
        value: Buffer.from(String(n)),
        partition: n % 2,
        ...(key ? { key: key(n) } : {}),
      })),
    )

  const nothing = { outgoing: [] }

  /** Sends each record, and records its end; the fourth is too large for its topic. */
  const passedOn = (value: Buffer, to: string, sent: string[]) => {
    const name = value.toString()
    const large = name === '4' ? Buffer.alloc(2_000_000) : value
    return {
      outgoing: [{ topic: to, record: { value: large, headers: new Map() } }],
      done: () => sent.push(name),
    }
  }

  const notes = async (): Promise<string[]> => {
    const [found] = await bench.admin.listConsumerGroupOffsets({ groups: [group()] })
    return (found?.topics[0]?.partitions ?? []).map(({ metadata }) => metadata ?? '')
  }

  it('processes every record once, and commits it', async () => {
    await put(1000)
    const seen: string[] = []
    const reader = started(async ({ value }) => {
      seen.push(value.toString())
      return nothing
    })
    await expect.poll(() => seen.length).toBe(1000)
    await reader.stop()
    expect(new Set(seen).size).toBe(1000)
    expect(await bench.committed(group())).toEqual([500, 500])
  })

  it('preserves the order of each key while keys run concurrently', async () => {
    await put(200, (n) => `key-${n % 10}`)
    const seen = new Map<string, number[]>()
    let running = 0
    let most = 0
    started(async ({ key, value }) => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      const name = key!.toString()
      seen.set(name, [...(seen.get(name) ?? []), Number(value.toString())])
      return nothing
    })
    const count = (): number => [...seen.values()].flat().length
    await expect.poll(count).toBe(200)
    for (const values of seen.values()) expect(values).toEqual(values.toSorted((a, b) => a - b))
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(8)
  })

  it('commits up to the first unfinished record, and remembers which later ones are done', async () => {
    await put(20)
    const slow = Promise.withResolvers<void>()
    const seen: string[] = []
    const reader = started(async ({ value }) => {
      if (value.toString() === '4') await slow.promise
      seen.push(value.toString())
      return nothing
    })
    await expect.poll(() => seen.length).toBe(19)
    await reader.stop(0)
    slow.resolve()
    expect(await bench.committed(group())).toEqual([2, 10])
    const again = startedAgain()
    await expect.poll(() => bench.committed(group())).toEqual([10, 10])
    // It was released properly, so the delivery does not count.
    expect(again).toEqual([['4', 1]])
  })

  it('starts no more records than its commit metadata can hold, so that no finished record is delivered again', async () => {
    const keyOf = (n: number): string => (n % 2 === 0 ? 'stuck' : `key-${n}`)
    const records = Array.from({ length: 4000 }, (_, n) => ({
      key: keyOf(n),
      value: Buffer.from(String(n)),
      partition: 0,
    }))
    await bench.put(topic, records)
    const stuck = Promise.withResolvers<void>()
    const seen: string[] = []
    const work: ReaderOptions['work'] = async ({ key, value }) => {
      if (key?.toString() === 'stuck') await stuck.promise
      seen.push(value.toString())
      return nothing
    }
    const reader = started(work)
    let before = 0
    const isStill = (): boolean => {
      const isSame = before > 0 && before === seen.length
      before = seen.length
      return isSame
    }
    await expect.poll(isStill, { interval: 300, timeout: 20_000 }).toBe(true)
    await reader.stop(0)
    stuck.resolve()
    started(work)
    await expect.poll(() => bench.committed(group())).toEqual([4000, 0])
    const unstuck = seen.filter((n) => Number(n) % 2 === 1)
    expect([unstuck.length, new Set(unstuck).size]).toEqual([2000, 2000])
  })

  it('finishes a record only after all its results are sent', async () => {
    const out = await bench.topic('out')
    await put(10)
    const done: string[] = []
    const reader = started(async ({ value }) => ({
      outgoing: [{ topic: out, record: { value, headers: new Map() } }],
      done: () => done.push(value.toString()),
    }))
    await expect.poll(() => done.length).toBe(10)
    await reader.stop()
    const sent = (await bench.read(out)).map(({ value }) => Number(value.toString()))
    expect(sent.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('does not commit a record whose results could not be sent, and retries', async () => {
    const missingTopic = `${bench.name}.missing.${'x'.repeat(240)}`
    await put(2)
    let failures = 0
    const reader = started(async ({ value }) => ({
      outgoing: [{ topic: missingTopic, record: { value, headers: new Map() } }],
      failed: () => (failures += 1),
    }))
    await expect.poll(() => failures, { timeout: 30_000 }).toBeGreaterThan(2)
    await reader.stop(0)
    expect(await bench.committed(group())).toEqual([0, 0])
  })

  it('retries rejected work', async () => {
    await put(1)
    let calls = 0
    started(async () => {
      if (++calls < 3) throw new Error('not yet')
      return nothing
    })
    await expect.poll(() => bench.committed(group())).toContain(1)
    expect(calls).toBe(3)
  })

  const transactor = (): Transactor => new Transactor(bench.cluster, `${bench.name}.sender`)

  it('blocks nothing but a record that its topic never accepts, and releases it uncounted, in transactions', async () => {
    const out = await bench.topic('out')
    await put(10)
    const sent: string[] = []
    const errors: unknown[] = []
    const reader = started(async ({ value }) => passedOn(value, out, sent), {
      transactor: transactor(),
      onError: (error) => errors.push(error),
    })
    await expect.poll(() => sent.length).toBe(9)
    await expect.poll(() => errors).toContainEqual(expect.objectContaining({ code: 'TOO_LARGE' }))
    await reader.stop(0)
    expect(await bench.committed(group())).toEqual([2, 5])
    const again = startedAgain()
    await expect.poll(() => bench.committed(group())).toEqual([5, 5])
    expect(again).toEqual([['4', 1]])
    expect(await bench.read(out)).toHaveLength(9)
  })

  it('lets later records of the key wait for one that its topic never accepts, in transactions', async () => {
    const out = await bench.topic('out')
    await put(10, (n) => (n % 2 === 0 ? 'same' : `key-${n}`))
    const sent: string[] = []
    const errors: unknown[] = []
    let calls = 0
    const reader = started(
      async ({ value }) => {
        calls += 1
        return passedOn(value, out, sent)
      },
      { transactor: transactor(), onError: (error) => errors.push(error) },
    )
    await expect.poll(() => errors).toContainEqual(expect.objectContaining({ code: 'TOO_LARGE' }))
    await expect.poll(() => calls).toBe(10)
    await expect.poll(() => sent.length).toBe(7)
    await reader.stop(0)
    expect(sent.toSorted()).toEqual(['0', '1', '2', '3', '5', '7', '9'])
    expect(await bench.committed(group())).toEqual([2, 5])
    const again = startedAgain()
    await expect.poll(() => bench.committed(group())).toEqual([5, 5])
    expect(again).toEqual(['4', '6', '8'].map((name) => [name, 1]))
  })

  it('releases uncounted the records that are being announced when it stops', async () => {
    await put(6)
    const sender = transactor()
    const send = sender.send.bind(sender)
    const announced: string[][] = []
    const stopped = Promise.withResolvers<void>()
    let ran = 0
    const stopping: Transactor['send'] = (outgoing, offsets) => {
      announced.push(offsets!.offsets.map(({ metadata }) => metadata))
      if (announced.length === 1) stopped.resolve(reader.stop())
      return send(outgoing, offsets)
    }
    const reader = started(
      async () => {
        ran += 1
        return nothing
      },
      { transactor: Object.assign(sender, { send: stopping }) },
    )
    await stopped.promise
    expect(ran).toBe(0)
    expect(announced[0]).toContain('1*3')
    expect((await notes()).join('')).toBe('')
  })

  it('continues with other records while suspects fail without killing the process', async () => {
    await put(6, (n) => (n < 3 ? 'same' : `key-${n}`))
    await bench.noteAt(group(), topic, ['1*3', '1*3'])
    const seen = new Set<string>()
    started(
      async ({ value }) => {
        if (value.toString() === '0') throw new Error('for ever')
        seen.add(value.toString())
        return nothing
      },
      { concurrency: 4, aloneFrom: 1 },
    )
    await expect.poll(() => [...seen].toSorted()).toEqual(['1', '3', '4', '5'])
    await bench.put(topic, [{ value: Buffer.from('later'), partition: 0 }])
    await expect.poll(() => seen.has('later')).toBe(true)
    // It has the key of the failing record.
    expect(seen.has('2')).toBe(false)
  })

  it('announces records to the broker before they start, and withdraws that on a graceful stop', async () => {
    await put(6)
    const begun: string[][] = []
    const reader = started(async () => {
      begun.push(await notes())
      return new Promise(() => {})
    })
    await expect.poll(() => begun.length).toBe(6)
    expect(begun).toContainEqual(['1*3', '1*3'])
    await reader.stop(0)
    expect(await notes()).toEqual(['', ''])
  })

  it('runs records alone whose process died twice', async () => {
    await put(6)
    await bench.noteAt(group(), topic, ['2*3', '2*3'])
    let running = 0
    let most = 0
    const deliveries: number[] = []
    started(async (_, turn) => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      deliveries.push(turn.deliveries)
      return nothing
    })
    await expect.poll(() => deliveries).toEqual([3, 3, 3, 3, 3, 3])
    expect(most).toBe(1)
  })

  it('runs records a few at a time, with no others, whose process died once', async () => {
    await put(30)
    await bench.noteAt(group(), topic, ['1*5', '1*5'])
    const suspects = new Set<string>()
    const together: boolean[] = []
    const running = new Set<string>()
    const isSuspect = (value: string): boolean => Number(value) < 10
    started(
      async ({ value }, { deliveries }) => {
        const name = value.toString()
        if (deliveries === 2) suspects.add(name)
        running.add(name)
        together.push([...running].every((one) => isSuspect(one) === isSuspect(name)))
        expect(running.size).toBeLessThanOrEqual(4)
        await new Promise((resolve) => setImmediate(resolve))
        running.delete(name)
        return nothing
      },
      { concurrency: 4 },
    )
    await expect.poll(() => together.length).toBe(30)
    expect([...suspects].map(Number).toSorted((a, b) => a - b)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ])
    expect(together.every(Boolean)).toBe(true)
  })

  it('shares partitions with members that join, and loses nothing when members join and leave', async () => {
    await put(400)
    const seen = new Set<string>()
    const work: ReaderOptions['work'] = async ({ value }) => {
      await new Promise((resolve) => setImmediate(resolve))
      seen.add(value.toString())
      return nothing
    }
    const first = started(work, { concurrency: 1 })
    await expect.poll(() => seen.size).toBeGreaterThan(0)
    const second = started(work, { concurrency: 1 })
    await expect.poll(() => second.partitions).toBe(1)
    await first.stop()
    await expect.poll(() => second.partitions).toBe(2)
    await put(400)
    await expect.poll(() => bench.committed(group())).toEqual([400, 400])
    expect(seen.size).toBe(400)
  })

  it('stops even while the broker does not answer whether a transaction is committed', async () => {
    const way = await lossyProxy(url)
    const about = { url: way.url, clock: systemClock, timeoutMs: 1000, clientId: bench.name }
    const cluster = new Cluster(about)
    const transactor = new Transactor(cluster, `${bench.name}.doubt`)
    let done = 0
    const work: ReaderOptions['work'] = async () => ({ outgoing: [], done: () => (done += 1) })
    const reader = started(work, { cluster, transactor })
    await put(1)
    await expect.poll(() => done).toBe(1)
    way.stop(apiKeys.endTransaction)
    await put(1)
    await expect.poll(() => way.lost()).toBeGreaterThan(0)
    await reader.stop(0)
    way.close()
  })
})

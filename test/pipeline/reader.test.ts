import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Reader, type ReaderOptions } from '../../src/pipeline/reader.ts'
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
      sessionMs: 1000,
      concurrency: 8,
      aloneFrom: 2,
      drainMs: 1000,
      work,
      trouble: () => {},
      ...more,
    })
    readers.push(reader)
    reader.start()
    return reader
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

  it('works on every record once, and says so to the broker', async () => {
    await put(1000)
    const seen: string[] = []
    const reader = started(async ({ value }) => {
      seen.push(value.toString())
      return nothing
    })
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(1000)
    await reader.stop()
    expect(new Set(seen).size).toBe(1000)
    expect(await bench.committed(group())).toEqual([500, 500])
  })

  it('keeps the order of each key while keys run side by side', async () => {
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
    await expect.poll(count, { timeout: 20_000 }).toBe(200)
    for (const values of seen.values()) expect(values).toEqual(values.toSorted((a, b) => a - b))
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(8)
  })

  it('commits no further than the first that is not done, and knows later which of those behind it are', async () => {
    await put(20)
    const slow = Promise.withResolvers<void>()
    const seen: string[] = []
    const reader = started(async ({ value }) => {
      if (value.toString() === '4') await slow.promise
      seen.push(value.toString())
      return nothing
    })
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(19)
    await reader.stop(0)
    slow.resolve()
    expect(await bench.committed(group())).toEqual([2, 10])
    const again: [string, number][] = []
    started(async ({ value }, { deliveries }) => {
      again.push([value.toString(), deliveries])
      return nothing
    })
    await expect.poll(() => bench.committed(group()), { timeout: 20_000 }).toEqual([10, 10])
    // It was given back in good order, so nothing is held against it.
    expect(again).toEqual([['4', 1]])
  })

  it('is done with a record only when all that came of it is sent', async () => {
    const out = await bench.topic('out')
    await put(10)
    const done: string[] = []
    const reader = started(async ({ value }) => ({
      outgoing: [{ topic: out, written: { value, headers: new Map() } }],
      done: () => done.push(value.toString()),
    }))
    await expect.poll(() => done.length, { timeout: 20_000 }).toBe(10)
    await reader.stop()
    const sent = (await bench.read(out)).map(({ value }) => Number(value.toString()))
    expect(sent.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('does not commit what could not be sent, and tries again', async () => {
    const missingTopic = `${bench.name}.missing.${'x'.repeat(240)}`
    await put(2)
    let failures = 0
    const reader = started(async ({ value }) => ({
      outgoing: [{ topic: missingTopic, written: { value, headers: new Map() } }],
      failed: () => (failures += 1),
    }))
    await expect.poll(() => failures, { timeout: 30_000 }).toBeGreaterThan(2)
    await reader.stop(0)
    expect(await bench.committed(group())).toEqual([0, 0])
  })

  it('works again on what was rejected', async () => {
    await put(1)
    let calls = 0
    started(async () => {
      if (++calls < 3) throw new Error('not yet')
      return nothing
    })
    await expect.poll(() => bench.committed(group()), { timeout: 20_000 }).toContain(1)
    expect(calls).toBe(3)
  })

  it('has told the broker what is begun before it is, and takes it back when it stops in good order', async () => {
    await put(6)
    const notes = async (): Promise<string[]> => {
      const [found] = await bench.admin.listConsumerGroupOffsets({ groups: [group()] })
      return (found?.topics[0]?.partitions ?? []).map(({ metadata }) => metadata ?? '')
    }
    const begun: string[][] = []
    const reader = started(async () => {
      begun.push(await notes())
      return new Promise(() => {})
    })
    await expect.poll(() => begun.length, { timeout: 20_000 }).toBe(6)
    expect(begun).toContainEqual(['1*3', '1*3'])
    await reader.stop(0)
    expect(await notes()).toEqual(['', ''])
  })

  it('tries records alone whose process ended twice', async () => {
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
    await expect.poll(() => deliveries, { timeout: 20_000 }).toEqual([3, 3, 3, 3, 3, 3])
    expect(most).toBe(1)
  })

  it('tries records a few at a time, with nothing beside them, whose process ended once', async () => {
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
    await expect.poll(() => together.length, { timeout: 20_000 }).toBe(30)
    expect([...suspects].map(Number).toSorted((a, b) => a - b)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ])
    expect(together.every(Boolean)).toBe(true)
  })

  it('shares partitions with those who join, and loses nothing when they come and go', async () => {
    await put(400)
    const seen = new Set<string>()
    const work: ReaderOptions['work'] = async ({ value }) => {
      await new Promise((resolve) => setImmediate(resolve))
      seen.add(value.toString())
      return nothing
    }
    const first = started(work, { concurrency: 1 })
    await expect.poll(() => seen.size, { timeout: 20_000 }).toBeGreaterThan(0)
    const second = started(work, { concurrency: 1 })
    await expect.poll(() => second.partitions, { timeout: 20_000 }).toBe(1)
    await first.stop()
    await expect.poll(() => second.partitions, { timeout: 20_000 }).toBe(2)
    await put(400)
    await expect.poll(() => bench.committed(group()), { timeout: 20_000 }).toEqual([400, 400])
    expect(seen.size).toBe(400)
  })
})

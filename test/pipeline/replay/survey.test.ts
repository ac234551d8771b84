import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import type { Cluster } from '../../../src/backends/kafka/cluster.ts'
import type { Fetcher } from '../../../src/backends/kafka/fetcher.ts'
import type { Stored } from '../../../src/backends/kafka/record.ts'
import { readAll } from '../../../src/backends/kafka/read-all.ts'
import { survey, type Surveyed } from '../../../src/pipeline/replay/survey.ts'

const place = { topic: 't', partition: 0 }
const call = <T>(act: () => Promise<T>): Promise<T> => act()
const cluster = { call, clock: systemClock, timeoutMs: 1000 } as unknown as Cluster

/** The records of a partition: keys by their offsets, `-k` for a tombstone of `k`. */
const lying = (keys: readonly (string | undefined)[], bytes = 1): Stored[] =>
  keys.flatMap((name, offset) => {
    if (name === undefined) return []
    const value = Buffer.alloc(name.startsWith('-') ? 0 : bytes)
    const key = name === '' ? undefined : Buffer.from(name.replace('-', ''))
    return [{ ...place, offset, timestampMs: 0, key, value, headers: [] }]
  })

/** Returns two offsets at a time. No transaction is open. */
const fetcherOf = (records: readonly Stored[], next: number, reads: number[] = []): Fetcher =>
  ({
    bounds: () => Promise.resolve([{ first: 0, next }]),
    stable: () => Promise.resolve(Infinity),
    read: (_: unknown, from: number) => {
      reads.push(from)
      const to = Math.min(from + 2, next)
      const found = records.filter(({ offset }) => offset >= from && offset < to)
      return Promise.resolve({ records: found, to })
    },
  }) as unknown as Fetcher

const surveyed = (
  keys: readonly (string | undefined)[],
  start = 0,
  end = keys.length,
): Promise<Surveyed> => survey(cluster, fetcherOf(lying(keys), keys.length), { place, start, end })

const offsetsIn = (records: readonly Stored[]): number[] => records.map(({ offset }) => offset)

describe('survey', () => {
  it('counts the first copy, and returns the others', async () => {
    const { doubles, copies } = await surveyed(['a', 'b', 'a', 'c', 'a'])
    expect([...doubles]).toEqual([2, 4])
    expect([...copies]).toEqual([[0, [2, 4]]])
  })

  it('counts no erased record, erased before or after', async () => {
    const { doubles } = await surveyed(['a', 'b', '-a', 'a', '-c', 'c'])
    expect([...doubles].toSorted((a, b) => a - b)).toEqual([0, 2, 3, 5])
  })

  it('counts each record without a key', async () => {
    expect((await surveyed(['', '', ''])).doubles.size).toBe(0)
  })

  it('holds wanted records, and reads all others', async () => {
    const { held, doubles, from } = await surveyed(['a', 'b', 'c', 'a', undefined, 'd'], 2)
    expect(offsetsIn(held.flat())).toEqual([2, 3, 5])
    expect([...doubles]).toEqual([3])
    expect(from).toBe(6)
  })

  it('holds no more than its limit, and returns the offset of the rest', async () => {
    const records = lying(['a', 'b', 'c', 'd', 'e', 'a'], 24 * 1024 ** 2)
    const { held, doubles, from } = await survey(cluster, fetcherOf(records, 6), {
      place,
      start: 0,
      end: 6,
    })
    expect(offsetsIn(held.flat())).toEqual([0, 1, 2])
    expect(from).toBe(3)
    expect([...doubles]).toEqual([5])
  })
})

describe('readAll', () => {
  it('requests the next records in advance, and none after the end', async () => {
    const reads: number[] = []
    const fetcher = fetcherOf(lying(['a', 'b', 'c', 'd', 'e', 'f']), 6, reads)
    const reading = readAll(cluster, fetcher, place, 0, 3)
    expect(offsetsIn((await reading.next()).value!.records)).toEqual([0, 1])
    expect(reads).toEqual([0, 2])
    expect(offsetsIn((await reading.next()).value!.records)).toEqual([2, 3])
    expect(await reading.next()).toMatchObject({ done: true })
    expect(reads).toEqual([0, 2])
  })

  it('ends when a second request returns nothing, and reads nothing when there is nothing', async () => {
    const reads: number[] = []
    for await (const { records } of readAll(cluster, fetcherOf([], 2, reads), place, 0, 9))
      expect(records).toEqual([])
    expect(reads).toEqual([0, 2, 2])
    const none = readAll(cluster, fetcherOf([], 0, reads), place, 5, 5)
    expect(await none.next()).toMatchObject({ done: true })
    expect(reads).toEqual([0, 2, 2])
  })

  it('rejects with the error of the broker', async () => {
    const read = (): Promise<never> => Promise.reject(new Error('the broker is away'))
    const reading = readAll(cluster, { read } as unknown as Fetcher, place, 0, 9)
    await expect(reading.next()).rejects.toThrow('the broker is away')
  })
})

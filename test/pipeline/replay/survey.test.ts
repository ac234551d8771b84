import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import type { Cluster } from '../../../src/backends/kafka/cluster.ts'
import type { Fetcher } from '../../../src/backends/kafka/fetcher.ts'
import type { StoredRecord } from '../../../src/backends/kafka/record.ts'
import { survey, type Surveyed } from '../../../src/pipeline/replay/survey.ts'

const place = { topic: 't', partition: 0 }
const call = <T>(act: () => Promise<T>): Promise<T> => act()
const cluster = { call, clock: systemClock, timeoutMs: 1000 } as unknown as Cluster

/** The records of a partition: keys by their offsets, `-k` for a tombstone of `k`. */
const recordsWith = (keys: readonly (string | undefined)[], bytes = 1): StoredRecord[] =>
  keys.flatMap((name, offset) => {
    if (name === undefined) return []
    const value = Buffer.alloc(name.startsWith('-') ? 0 : bytes)
    const key = name === '' ? undefined : Buffer.from(name.replace('-', ''))
    return [{ ...place, offset, timestampMs: 0, key, value, headers: [] }]
  })

/** Returns two offsets at a time. No transaction is open. */
const fetcherOf = (records: readonly StoredRecord[], next: number): Fetcher =>
  ({
    bounds: () => Promise.resolve([{ first: 0, next }]),
    async *readAll(_: unknown, start: number, end: number) {
      for (let from = start; from < end; from += 2) {
        const to = Math.min(from + 2, next)
        yield { records: records.filter(({ offset }) => offset >= from && offset < to), to }
      }
    },
  }) as unknown as Fetcher

const surveyed = (
  keys: readonly (string | undefined)[],
  start = 0,
  end = keys.length,
): Promise<Surveyed> =>
  survey(cluster, fetcherOf(recordsWith(keys), keys.length), { place, start, end })

const offsetsIn = (records: readonly StoredRecord[]): number[] =>
  records.map(({ offset }) => offset)

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
    const records = recordsWith(['a', 'b', 'c', 'd', 'e', 'a'], 24 * 1024 ** 2)
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

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Client } from 'pg'
import { systemClock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { edit, resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { sendInParts } from '../../../src/stores/postgres/batches.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { missing, openPostgresBench, type PostgresBench } from './postgres-bench.ts'

const parts: [all: number[], most: number, parts: number[][]][] = [
  [[], 3, []],
  [[1, 1, 1], 3, [[1, 1, 1]]],
  [[1, 1, 1, 1], 3, [[1, 1, 1], [1]]],
  [[2, 2, 1, 3], 3, [[2], [2, 1], [3]]],
  [[9, 1, 9, 9], 3, [[9], [1], [9], [9]]],
]

describe('sendInParts', () => {
  it.each(parts)('sends %j with at most %i at once as %j', async (all, most, expected) => {
    const sent: number[][] = []
    const send = async (some: readonly number[]): Promise<number[]> => {
      sent.push([...some])
      return [...some]
    }
    expect(await sendInParts(all, most, send, (cost) => cost)).toEqual(all)
    expect(sent).toEqual(expected)
  })
})

describe.skipIf(missing)('calls that postgresStore sends as a batch', () => {
  let bench: PostgresBench

  beforeEach(async () => {
    bench = await openPostgresBench()
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await bench.close()
  })

  it('split a large capture by bytes', async () => {
    const bytes = new Uint8Array(4 * 2 ** 20)
    const payload = { ...aLetter().payload, bytes, size: bytes.length }
    const spy = vi.spyOn(Client.prototype, 'query')
    const added = await bench.store.add(Array.from({ length: 7 }, () => aLetter({ payload })))
    expect(added).toEqual(added.map(() => ({ kind: 'added' })))
    const sizes = spy.mock.calls
      .flatMap(([query]) => (query as unknown as { values?: unknown[] }).values ?? [])
      .filter((value) => typeof value === 'string' && value.length > bytes.length)
      // As base64.
      .map((value) => Math.floor(((value as string).length * 3) / 4 / bytes.length))
    // Parts of three letters, of which two are sent at once.
    expect(sizes).toEqual([6, 1])
  })

  it('store letters that are alike in some fields, whichever these are', async () => {
    const others: Partial<DeadLetter>[] = [
      { category: 'network' },
      { severity: 'low' },
      { maxRetries: 9 },
      { metadata: { key: 'value' } },
      { tenant: 'other' },
      { fingerprint: 'v1-other' },
      { headers: { name: 'value' } },
    ]
    const pairs = Array.from({ length: 2 ** others.length }, (_, bits) => {
      const differences = others.filter((_other, n) => (bits >> n) & 1)
      return [aLetter(), aLetter(Object.assign({}, ...differences) as Partial<DeadLetter>)]
    })
    for (const pair of pairs) await bench.store.add(pair)
    const letters = pairs.flat()
    expect(await bench.store.get(letters.map(({ id }) => id))).toEqual(letters)
    const found = await bench.store.find({ group: 'v1-other', limit: 1000 })
    expect(found.items.length).toBe(pairs.length / 2)
  })

  it('do not fail because of another call in the batch', async () => {
    const [wrong, good] = [aLetter(), aLetter()]
    await bench.store.add([wrong, good, aLetter({ dependsOn: [good.id], lane: 'l' })])
    const by = { at: toTimestamp(Date.UTC(2026, 0, 2)), actor: 'me', guard: 'version' } as const
    const long = Array.from({ length: 6000 }, () => systemClock.id()).join('')
    const [edited, resolved] = await Promise.allSettled([
      bench.store.apply([edit(wrong, by, { tags: [long] })]),
      bench.store.apply([resolve(good, by)]),
    ])
    expect(edited).toMatchObject({ reason: { code: 'INVALID_INPUT' } })
    expect(resolved).toMatchObject({ value: ['written'] })
  })

  it('write the records of concurrent calls in one transaction', async () => {
    const spy = vi.spyOn(Client.prototype, 'query')
    const { records } = bench.store
    const ids = Array.from({ length: 100 }, (_, n) => `${n}`)
    const results = await Promise.all(ids.map((id) => records.put('kind', id, id, 0)))
    expect(new Set(results)).toEqual(new Set(['written']))
    const sent = spy.mock.calls.map(([query]) => (query as unknown as { text: string }).text)
    expect(sent.filter((text) => text === 'COMMIT')).toEqual(['COMMIT'])
  })

  it('check the expected version of each record of a batch', async () => {
    const { records } = bench.store
    await records.put('kind', 'old', 1)
    const results = await Promise.all([
      records.put('kind', 'old', 2, 1),
      records.put('kind', 'old', 3, 1),
      records.put('kind', 'old', 4),
      records.put('kind', 'old', 5, 0),
      records.put('kind', 'new', 6, 0),
      records.put('kind', 'none', 7, 1),
      records.put('kind', 'any', 8),
      records.put('other', 'new', 9, 0),
    ])
    expect(results.map((result) => result === 'written')).toEqual([
      true,
      false,
      true,
      false,
      true,
      false,
      true,
      true,
    ])
    const found = await records.list('kind')
    expect(found.map(({ id, version, value }) => [id, version, value])).toEqual([
      ['any', 1, 8],
      ['new', 1, 6],
      ['old', 3, 4],
    ])
  })

  it('write a record although another record of the batch cannot be stored', async () => {
    const { records } = bench.store
    const long = Array.from({ length: 6000 }, () => systemClock.id()).join('')
    const [wrong, good] = await Promise.allSettled([
      records.put('kind', long, 1, 0),
      records.put('kind', 'good', 2, 0),
    ])
    expect(wrong).toMatchObject({ reason: { code: 'INVALID_INPUT' } })
    expect(good).toMatchObject({ value: 'written' })
    expect(await records.get('kind', 'good')).toMatchObject({ version: 1, value: 2 })
  })
})

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
})

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { maxHistory } from '../../../src/letter/history.ts'
import { bulkMovesFor } from '../../../src/letter/bulk-moves.ts'
import type { DeadLetter, HistoryEntry, Payload } from '../../../src/letter/letter.ts'
import { claim, edit, resolve, retry, withChange } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { openSqliteBench } from './sqlite-bench.ts'

const at = '2026-01-02T00:00:00.000Z'
const by = { at, actor: 'ada', guard: 'version' } as const

describe('rows of sqliteStore', () => {
  let clock: ReturnType<typeof fakeClock>
  let bench: Awaited<ReturnType<typeof openSqliteBench>>
  beforeEach(async () => {
    clock = fakeClock()
    bench = await openSqliteBench(clock)
  })
  afterEach(() => bench.close())

  /** A letter with a full history. */
  function oldLetter(overrides: Partial<DeadLetter> = {}): DeadLetter {
    const letter = aLetter(overrides)
    const entries = Array.from({ length: maxHistory - 1 }, (_, n): HistoryEntry => {
      return {
        at,
        actor: `n${n}`,
        action: 'edit',
        from: letter.state,
        to: letter.state,
        note: '\n',
      }
    })
    return { ...letter, history: [...letter.history, ...entries], historyOmitted: 3 }
  }

  it('drop the second entry of a full history when a lapsed lease is claimed', async () => {
    const lease = { worker: 'w-1', epoch: 1, expiresAt: '2020-01-01T00:00:00.000Z' }
    const letter = oldLetter({ state: 'retrying', epoch: 1, lease })
    await bench.store.keep([{ letter }])
    const { letters } = await bench.store.claim({ worker: 'w-2', limit: 1, leaseMs: 1000 })
    const atMs = clock.now()
    expect(letters).toEqual([claim(letter, { worker: 'w-2', atMs, leaseMs: 1000 })])
    expect(letters[0]!.history).toHaveLength(maxHistory)
    expect(letters[0]!.historyOmitted).toBe(4)
    expect(letters[0]!.history[1]!.actor).toBe('n1')
  })

  it('drop the second entry of a full history for each of two changes in one batch', async () => {
    const letter = oldLetter()
    await bench.store.keep([{ letter }])
    const first = edit(letter, by, { priority: 'high' })
    const edited = withChange(letter, first)
    const second = retry(edited, by)
    expect(await bench.store.apply([first, second])).toEqual(['written', 'written'])
    expect(await bench.store.get([letter.id])).toEqual([withChange(edited, second)])
  })

  it('append to an empty history', async () => {
    const letter = { ...aLetter(), history: [] }
    await bench.store.keep([{ letter }])
    const change = resolve(letter, by)
    await bench.store.apply([change])
    expect(await bench.store.get([letter.id])).toEqual([withChange(letter, change)])
  })

  it('change letters with and without lane, tags and dependents in one batch', async () => {
    const { store } = bench
    const plain = [aLetter(), aLetter()]
    const lane = [aLetter({ lane: 'l', tags: ['t'] }), aLetter({ lane: 'l' })]
    const dependent = aLetter({ dependsOn: [plain[0]!.id, lane[0]!.id] })
    await store.add([...plain, ...lane, dependent])
    const moves = [plain[0]!, lane[0]!, plain[1]!].map((letter) => resolve(letter, by))
    expect(await store.apply(moves)).toEqual(['written', 'written', 'written'])
    const { letters } = await store.claim({ worker: 'w', limit: 9, leaseMs: 1000 })
    expect(letters.map(({ id }) => id)).toEqual([lane[1]!.id, dependent.id])
    expect(await store.tally('tag', { state: 'resolved' })).toEqual(new Map([['t', 1]]))
  })

  it('free a letter whose dependency is resolved by another handle meanwhile', async () => {
    const { store } = bench
    const other = await bench.another!()
    const roots = Array.from({ length: 40 }, () => aLetter({ state: 'parked' }))
    await store.add(roots)
    const dependents = roots.map(({ id }) => aLetter({ dependsOn: [id] }))
    await Promise.all(
      roots.flatMap((root, n) => [store.apply([resolve(root, by)]), other.add([dependents[n]!])]),
    )
    const { letters } = await store.claim({ worker: 'w', limit: 100, leaseMs: 1000 })
    expect(letters.map(({ id }) => id)).toEqual(dependents.map(({ id }) => id))
    expect((await store.find({ dependent: true })).items).toEqual([])
  })

  it('are moved by applyAll in steps, with other calls in between', async () => {
    const { store } = bench
    const letters = Array.from({ length: 3000 }, (_, n) =>
      aLetter({ state: 'parked', retries: n % 3, ...(n % 100 ? {} : { tags: ['t'], lane: 'l' }) }),
    )
    await store.add(letters)
    const moves = bulkMovesFor('retry', { at: toTimestamp(clock.now()), actor: 'ada' })
    let isDone = false
    const moving = store.applyAll(letters.slice(0, 2500), moves)
    const moved = moving.finally(() => (isDone = true))
    await store.add([aLetter({ state: 'parked', queue: 'other' })])
    expect(isDone).toBe(false)
    expect(await moved).toEqual(Array.from({ length: 2500 }, () => 'written'))
    expect(await store.tally('state', { queue: 'orders' })).toEqual(
      new Map([
        ['parked', 500],
        ['pending', 2500],
      ]),
    )
    expect((await store.tally('tag', { state: 'pending' })).get('t')).toBe(25)
    const { letters: claimed } = await store.claim({ worker: 'w', limit: 1000, leaseMs: 1000 })
    expect(claimed.filter(({ lane }) => lane === 'l')).toHaveLength(1)
  })

  it('keep bytes as they are, UTF-8 or not', async () => {
    const strings = ['\ufeffa\0b', '', '{"a":"ä🦊"}'].map((one) => new TextEncoder().encode(one))
    const payloads = [...strings, Uint8Array.of(0xc3, 0x28), Uint8Array.of(0xed, 0xa0, 0x80)]
    const letters = payloads.map((bytes) => {
      const payload: Payload = { bytes, contentType: 'x', size: bytes.length, version: 1 }
      return aLetter({ payload })
    })
    await bench.store.add(letters)
    expect(await bench.store.get(letters.map(({ id }) => id))).toEqual(letters)
  })

  it('have UUIDs as ids: no other id is stored or found', async () => {
    const { store } = bench
    const letter = aLetter()
    const odd = { ...letter, id: 'order-1' }
    await expect(store.add([odd])).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await store.add([letter])
    expect(await store.get(['order-1', letter.id])).toHaveLength(1)
    expect((await store.find({ ids: ['order-1'] })).items).toEqual([])
    expect(await store.apply([{ ...resolve(letter, by), id: 'order-1' }])).toEqual(['missing'])
    expect(await store.remove({ ids: ['order-1'] })).toBe(0)
    expect(await store.renew([{ id: 'order-1', epoch: 0 }], 1000)).toEqual([false])
  })
})

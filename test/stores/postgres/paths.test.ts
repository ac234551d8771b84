import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { maxHistory } from '../../../src/letter/history.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { edit, resolve, retry, withChange } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { meanwhile, missing, openPostgresBench, type PostgresBench } from './postgres-bench.ts'

const by = { at: toTimestamp(Date.UTC(2026, 0, 2)), actor: 'ada', guard: 'version' } as const
const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n))

describe.skipIf(missing)('statements and transactions of postgresStore', () => {
  let bench: PostgresBench

  beforeEach(async () => {
    bench = await openPostgresBench()
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await bench.close()
  })

  const claimed = async (): Promise<string[]> => {
    const { letters } = await bench.store.claim({ worker: 'w', limit: 10, leaseMs: 60_000 })
    return letters.map(({ id }) => id)
  }

  /** The first words of the statements that a call sends. */
  async function sentBy(call: () => Promise<unknown>): Promise<string[]> {
    const spy = vi.spyOn(Client.prototype, 'query')
    await call()
    const sent = spy.mock.calls.map(([query]) => (query as unknown as { text: string }).text)
    spy.mockRestore()
    return sent.filter((text) => !text.includes('pg_notify')).map((text) => text.split(' ')[0]!)
  }

  it('adds, claims and settles plain letters with one statement each', async () => {
    const { store } = bench
    await store.add([aLetter()])
    await claimed()
    const letters = times(3, () => aLetter())
    expect(await sentBy(() => store.add(letters))).toEqual(['WITH'])
    let got: DeadLetter[] = []
    const claim = { worker: 'w', limit: 3, leaseMs: 60_000 }
    expect(await sentBy(async () => (got = (await store.claim(claim)).letters))).toEqual(['WITH'])
    const changes = got.map((letter) => resolve(letter, { ...by, guard: 'epoch' }))
    expect(await sentBy(() => store.apply(changes))).toEqual(['WITH'])
    expect((await store.tally('state')).get('resolved')).toBe(3)
  })

  it('adds plain and other letters of one call, in the order of the call', async () => {
    const first = aLetter()
    const letters = [
      aLetter({ lane: 'l' }),
      first,
      aLetter({ dedupeKey: 'k', tags: ['a'] }),
      aLetter({ dependsOn: [first.id] }),
      aLetter({ dedupeKey: 'k' }),
      first,
    ]
    const results = await bench.store.add(letters)
    expect(results.map(({ kind }) => kind)).toEqual([
      'added',
      'added',
      'added',
      'added',
      'duplicate',
      'duplicate',
    ])
    const due = letters.slice(0, 3).map(({ id }) => id)
    expect(await claimed()).toEqual(due.toSorted())
  })

  it('settles plain letters and letters of a lane in one call', async () => {
    const letters = [aLetter(), aLetter({ lane: 'l' }), aLetter({ lane: 'l' }), aLetter()]
    await bench.store.add(letters)
    const [plain, head, next, last] = letters as [DeadLetter, DeadLetter, DeadLetter, DeadLetter]
    const absent = aLetter()
    const changes = [plain, head, absent, last].map((letter) => resolve(letter, by))
    expect(await bench.store.apply(changes)).toEqual(['written', 'written', 'missing', 'written'])
    expect(await bench.store.apply(changes.slice(0, 1))).toEqual(['conflict'])
    expect(await claimed()).toEqual([next.id])
  })

  it('writes two changes of one letter in order', async () => {
    const letter = aLetter({ state: 'parked' })
    await bench.store.add([letter])
    const first = retry(letter, by)
    const second = resolve(withChange(letter, first), by)
    const stale = edit(letter, by, { priority: 'low' })
    expect(await bench.store.apply([first, second, stale])).toEqual([
      'written',
      'written',
      'conflict',
    ])
    const expected = withChange(withChange(letter, first), second)
    expect(await bench.store.get([letter.id])).toEqual([expected])
  })

  it('drops the second entry of a history that is full', async () => {
    let letter = aLetter()
    await bench.store.add([letter])
    for (let n = 0; n < maxHistory + 3; n++) {
      const change = retry(letter, { ...by, note: `note ${n}` })
      expect(await bench.store.apply([change])).toEqual(['written'])
      letter = withChange(letter, change)
    }
    expect(letter.historyOmitted).toBe(4)
    expect(await bench.store.get([letter.id])).toEqual([letter])
  })

  it('records a lapsed lease in a history that is full', async () => {
    const entry = { at: by.at, actor: 'a\ud800"b', action: 'retry', from: null, to: null } as const
    const letter = aLetter({ history: times(maxHistory, () => entry) })
    await bench.store.add([letter])
    const worker = 'w\0"\\\ud800'
    await bench.store.claim({ worker, limit: 1, leaseMs: 0 })
    const { letters } = await bench.store.claim({ worker: 'next', limit: 1, leaseMs: 60_000 })
    const [again] = letters
    expect(again!.history.length).toBe(maxHistory)
    expect(again!.historyOmitted).toBe(1)
    expect(again!.history.at(-1)).toMatchObject({ actor: worker, action: 'claim', epoch: 1 })
    expect(again!.history.at(-1)!.note).toContain(`the lease of ${worker} lapsed at`)
  })

  it('releases a letter whose dependency is resolved while the dependency is added', async () => {
    const root = aLetter({ queue: 'roots', state: 'parked' })
    const leaf = aLetter({ dependsOn: [root.id] })
    await bench.store.add([root])
    meanwhile('SET depended = true', async () => {
      // Waits for the row, which the transaction of the leaf has locked.
      const resolving = bench.store.apply([resolve(root, by)])
      await expect.poll(() => bench.ask(waiting)).toEqual([[1]])
      void resolving
    })
    await bench.store.add([leaf])
    await expect.poll(claimed).toEqual([leaf.id])
  })

  it('releases a letter that waits for one that is stored and removed in between', async () => {
    const root = aLetter({ queue: 'roots', state: 'parked' })
    const leaf = aLetter({ dependsOn: [root.id] })
    await bench.store.add([leaf])
    await bench.store.add([root])
    expect(await bench.store.remove({ ids: [root.id] })).toBe(1)
    expect(await bench.store.get([root.id])).toEqual([])
    await bench.store.add([root])
    expect(await claimed()).toEqual([])
    await bench.store.apply([resolve(root, by)])
    expect(await claimed()).toEqual([leaf.id])
  })

  it('stores payloads that are text, binary, or text that Postgres rejects', async () => {
    const strings = ['{"a":"\u{1f98a}"}', '', 'a\0b', 'a\u001eb', '\ufeffa', 'a\u001d']
    const payloads = [
      ...strings.map((text) => new TextEncoder().encode(text)),
      new Uint8Array([0xff, 0xfe, 0]),
    ]
    const letters = payloads.map((bytes) =>
      aLetter({ payload: { ...aLetter().payload, bytes, size: bytes.length } }),
    )
    await bench.store.add(letters)
    expect(await bench.store.get(letters.map(({ id }) => id))).toEqual(letters)
    const rows = await bench.ask('SELECT payload IS NOT NULL FROM @bodies ORDER BY id')
    expect(rows.flat()).toEqual([true, true, false, false, true, false, false])
  })
})

/** Statements that wait for a row of another transaction. */
const waiting = `SELECT count(*)::int FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND query LIKE '%guard_version%'`

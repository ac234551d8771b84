import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store, StoredLetter } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aLetter, fakeClock } from '../../src/testing/index.ts'
import { everything } from '../../src/transfer/copy/batches.ts'
import { exportLines, findPosition } from '../../src/transfer/lines/export.ts'
import { importLines } from '../../src/transfer/lines/import.ts'
import { atDepth } from '../depth.ts'
import { missing as noPostgres, openPostgresBench } from '../stores/postgres/postgres-bench.ts'
import { openRedisBench, single as redisServer } from '../stores/redis/redis-bench.ts'
import { openSqliteBench } from '../stores/sqlite/sqlite-bench.ts'
import { liveIn } from './copy/lived-in.ts'
import { storedLetters } from './lines/stored-letters.ts'

const clock = fakeClock()

async function openMemory(): Promise<{ store: Store; close(): Promise<void> }> {
  const store = memoryStore({ clock })
  await store.open()
  return { store, close: () => store.close() }
}

async function collect(lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = []
  for await (const line of lines) all.push(line)
  return all
}

const exportAll = (store: Store): Promise<string[]> =>
  collect(exportLines(store, clock, everything))

const idsOf = (lines: readonly string[]): string[] =>
  lines.flatMap((line) => {
    const { letter } = JSON.parse(line) as { letter?: DeadLetter }
    return letter ? [letter.id] : []
  })

/** Removes all letters, also leased ones. */
async function clear(store: Store): Promise<void> {
  const leased = await store.find({ state: 'retrying', limit: 1000 })
  await store.keep(
    leased.items.map(({ id, version }) => ({
      letter: aLetter({ id, version: version + 1, state: 'resolved' }),
    })),
  )
  await store.remove(everything)
}

const places: [kind: string, missing: string | undefined, open: typeof openMemory][] = [
  ['memory', undefined, openMemory],
  ['sqlite', undefined, () => openSqliteBench()],
  ['postgres', noPostgres, () => openPostgresBench(fakeClock())],
  ['redis', redisServer.missing, () => openRedisBench()],
]

describe.each(places)('letters as lines, on %s', (_kind, missing, open) => {
  describe.skipIf(missing)('', () => {
    it('gives the same letters as they were', { timeout: 60_000 }, async () => {
      const bench = await open()
      const byId = (a: StoredLetter, b: StoredLetter) => (a.letter.id < b.letter.id ? -1 : 1)
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(storedLetters, { selector: ({ letter }) => letter.id, maxLength: 8 }),
          async (letters) => {
            await clear(bench.store)
            const source = await openMemory()
            await source.store.keep(letters)
            const lines = await exportAll(source.store)
            const report = await importLines(bench.store, lines)
            expect(report).toMatchObject({ complete: true, added: letters.length, existing: 0 })
            const ids = letters.map(({ letter }) => letter.id).toSorted()
            expect(await bench.store.stored(ids)).toEqual(letters.toSorted(byId))
            const again = await exportAll(bench.store)
            expect(idsOf(again)).toEqual(ids)
            const third = await openMemory()
            await importLines(third.store, again)
            expect(await third.store.stored(ids)).toEqual(letters.toSorted(byId))
          },
        ),
        { numRuns: atDepth(8, 25) },
      )
      await bench.close()
    })

    it('keeps edits, leases, dependencies and duplicates of a store in use', async () => {
      const [from, to] = [await open(), await openMemory()]
      await liveIn(from.store)
      const lines = await exportAll(from.store)
      const ids = idsOf(lines)
      await importLines(to.store, lines)
      expect(await to.store.stored(ids)).toEqual(await from.store.stored(ids))
      await from.close()
    })
  })
})

describe('exportLines', () => {
  let store: Store
  let letters: DeadLetter[]
  beforeEach(async () => {
    ;({ store } = await openMemory())
    letters = Array.from({ length: 700 }, (_, n) =>
      aLetter({ queue: n % 2 ? 'odd' : 'even', ...(n === 0 ? { state: 'archived' } : {}) }),
    )
    await store.add(letters)
  })
  afterEach(() => store.close())

  it('has a first line, the letters in the order of their ids, and a last line', async () => {
    const lines = await exportAll(store)
    expect(JSON.parse(lines[0]!)).toMatchObject({ redrive: 'letters', version: 1 })
    expect(idsOf(lines)).toEqual(letters.map(({ id }) => id))
    expect(JSON.parse(lines.at(-1)!)).toEqual({
      letters: 700,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  it('reads letters only as lines are taken', async () => {
    let reads = 0
    const counted = new Proxy(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown
        if (name === 'stored') reads += 1
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const lines = exportLines(counted, clock, everything)
    for (let n = 0; n < 20; n++) await lines.next()
    expect(reads).toBe(1)
    await lines.return(undefined)
  })

  it('exports letters that match a filter, after an id', async () => {
    const after = letters[349]!.id
    const lines = await collect(exportLines(store, clock, { queue: 'odd' }, { after }))
    expect(JSON.parse(lines[0]!)).toMatchObject({ filter: { queue: 'odd' }, after })
    expect(idsOf(lines)).toEqual(
      letters.filter(({ id, queue }) => queue === 'odd' && id > after).map(({ id }) => id),
    )
  })

  it('continues an export after any byte, with the same result', async () => {
    const whole = Buffer.from((await exportAll(store)).join(''))
    const firstLine = whole.indexOf('\n') + 1
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: firstLine, max: whole.length }), async (end) => {
        const position = await findPosition([whole.subarray(0, end)])
        const rest = position.isFinished
          ? []
          : await collect(exportLines(store, clock, everything, {}, position))
        const parts = [whole.subarray(0, position.bytes), Buffer.from(rest.join(''))]
        expect(Buffer.concat(parts).equals(whole)).toBe(true)
      }),
      { numRuns: 10 },
    )
  })

  it('rejects unknown keys and values', async () => {
    await expect(collect(exportLines(store, clock, { status: 1 } as never))).rejects.toThrow(
      'unknown key "status"',
    )
    await expect(collect(exportLines(store, clock, {}, { before: 'x' } as never))).rejects.toThrow(
      'unknown key "before" in export options',
    )
    await expect(collect(exportLines(store, clock, {}, { after: 'x' }))).rejects.toThrow(
      'after must be the id of a letter, got "x"',
    )
  })
})

describe('importLines', () => {
  let lines: string[]
  let to: Store
  const letters = Array.from({ length: 600 }, () => aLetter())
  beforeEach(async () => {
    const from = await openMemory()
    await from.store.add(letters)
    lines = await exportAll(from.store)
    ;({ store: to } = await openMemory())
  })
  afterEach(() => to.close())

  const countIn = async (store: Store): Promise<number> =>
    (await store.tally('state', everything)).get('pending') ?? 0

  it('reads chunks of any size', async () => {
    const whole = Buffer.from(lines.slice(0, 8).join(''))
    const short = lines.slice(0, 8)
    const chunked = Array.from({ length: Math.ceil(whole.length / 7) }, (_, n) =>
      whole.subarray(n * 7, n * 7 + 7),
    )
    const [one, other] = [short, chunked].map((chunks) =>
      importLines(to, chunks, { skipDamaged: true, verifyOnly: true }),
    )
    expect(await one).toEqual(await other)
    expect(await one).toMatchObject({ letters: 7, problems: { count: 1 } })
  })

  it('changes nothing when it is repeated, and leaves newer letters alone', async () => {
    expect(await importLines(to, lines)).toMatchObject({ added: 600, existing: 0 })
    expect(await importLines(to, lines)).toMatchObject({ added: 0, existing: 600 })
    const newer = { ...letters[0]!, version: 9, tags: ['newer'] }
    await to.keep([{ letter: newer }])
    await importLines(to, lines)
    expect(await to.get([newer.id])).toEqual([newer])
  })

  it('writes nothing if it only verifies', async () => {
    const report = await importLines(to, lines, { verifyOnly: true })
    expect(report).toMatchObject({ complete: true, letters: 600, added: 0 })
    expect(await countIn(to)).toBe(0)
  })

  const damages: [what: string, message: string, (all: string[]) => string[]][] = [
    [
      'a changed letter',
      'line 5: it is damaged',
      (all) => all.with(4, all[4]!.replace('it failed', 'it faild')),
    ],
    ['a line that is not JSON', 'line 5: it is damaged', (all) => all.with(4, '?\n')],
    ['an empty line', 'line 5: it is damaged', (all) => all.toSpliced(4, 0, '\n')],
    [
      'a missing line',
      'line 601: the export has 600 letters, and the file has 599',
      (all) => all.toSpliced(4, 1),
    ],
    [
      'a repeated line',
      'line 603: the export has 600 letters',
      (all) => all.toSpliced(4, 0, all[4]!),
    ],
    [
      'lines in another order',
      'line 602: the sha256',
      (all) => all.with(4, all[5]!).with(5, all[4]!),
    ],
    ['a missing end', 'line 602: the last line is missing', (all) => all.slice(0, -1)],
    ['a cut line', 'line 601: it is cut off', (all) => [all.slice(0, -1).join('').slice(0, -5)]],
    ['a line after the end', 'line 603: it is after the last line', (all) => [...all, all[4]!]],
    ['another first line', 'line 1: ', (all) => all.slice(1)],
    ['nothing', 'it is empty', () => []],
  ]

  it.each(damages)('names the line: %s', async (_, message, damage) => {
    await expect(importLines(to, damage(lines))).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining(message),
    })
  })

  it('imports the letters before a damaged line, and all others if damaged ones are skipped', async () => {
    const damaged = lines.with(300, '{"crc":"00000000","letter":{}}\n').with(400, 'x\n')
    await expect(importLines(to, damaged)).rejects.toThrow('line 301')
    expect(await countIn(to)).toBe(299)
    const report = await importLines(to, damaged, { skipDamaged: true })
    expect(report).toMatchObject({ complete: true, added: 299, existing: 299 })
    expect(report.problems).toEqual({
      count: 2,
      first: [expect.stringMatching(/^line 301: /), expect.stringMatching(/^line 401: /)],
    })
  })

  it('limits the length of a line, and skips the rest of a longer one', async () => {
    const long = `{"crc":"00000000","letter":"${'x'.repeat(100_000)}"}\n`
    const all = lines.with(300, long)
    await expect(importLines(to, all, { maxLineBytes: 10_000 })).rejects.toThrow(
      /line 301: it has 1000\d\d bytes, and at most 10000 are read/,
    )
    const report = await importLines(to, all, { maxLineBytes: 10_000, skipDamaged: true })
    expect(report).toMatchObject({ letters: 599, problems: { count: 1 } })
  })

  it('reports letters that were damaged, and sets their readable part aside', async () => {
    const letter = aLetter({ corrupt: 'a bad checksum' })
    const from = {
      find: async () => ({ items: [letter] }),
      stored: async () => [{ letter }],
    } as unknown as Store
    const report = await importLines(to, exportLines(from, clock, everything))
    expect(report).toMatchObject({
      added: 0,
      damaged: { count: 1, first: [{ id: letter.id, why: 'a bad checksum' }] },
    })
    expect(await to.get([letter.id])).toEqual([])
    expect((await to.records.get('damaged', letter.id))!.value).toMatchObject({
      letter: { id: letter.id },
    })
  })

  it('stops between two batches, and continues when it is repeated', async () => {
    const stop = new AbortController()
    const report = await importLines(to, lines, {
      signal: stop.signal,
      onProgress: () => stop.abort(),
    })
    expect(report).toMatchObject({ complete: false, added: 250 })
    expect(await importLines(to, lines)).toMatchObject({ complete: true, added: 350 })
  })

  it('rejects an unknown option', async () => {
    await expect(importLines(to, lines, { skip: true } as never)).rejects.toThrow(
      'unknown key "skip" in import options',
    )
  })
})

it('DeadLetterQueue exports and imports letters', async () => {
  await using from = await DeadLetterQueue.open('memory:')
  await using to = await DeadLetterQueue.open('memory:')
  const letter = await from.enqueue({ type: 'charge', payload: { amount: 1 } }, new Error('no'))
  const report = await to.importLetters(from.exportLetters())
  expect(report).toMatchObject({ complete: true, added: 1 })
  expect(await to.get(letter.id)).toEqual(await from.get(letter.id))
})

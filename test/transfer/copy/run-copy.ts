import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  copyStore,
  type CopyOptions,
  type CopyProgress,
  type CopyReport,
} from '../../../src/transfer/copy/copy.ts'
import { priorities, states, type DeadLetter } from '../../../src/letter/letter.ts'
import { archive, resolve, type Mover } from '../../../src/letter/moves.ts'
import type { Store, StoredLetter } from '../../../src/store.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { mixedLetters } from '../../../src/testing/store/mixed.ts'
import { atDepth, isDeep } from '../../depth.ts'
import { liveIn } from './lived-in.ts'

/** A kind of store, and how to open a new, empty one. */
export interface Place {
  kind: string
  open: () => Promise<{ store: Store; close: () => Promise<void> }>
  /** Opening one takes a second or more, so fewer are opened. */
  slow?: true
}

const by: Mover = { at: '2026-01-04T00:00:00.000Z', actor: 'ada', guard: 'version' }
const source = 'test:source'
const everything = { state: [...states] }

async function storedIn(store: Store): Promise<StoredLetter[]> {
  const letters: StoredLetter[] = []
  let cursor: string | undefined
  do {
    const from = cursor === undefined ? {} : { cursor }
    const page = await store.find({ ...everything, order: 'oldest', limit: 1000, ...from })
    letters.push(...(await store.stored(page.items.map(({ id }) => id))))
    cursor = page.cursor
  } while (cursor !== undefined)
  return letters.map(({ letter, original, waitsFor = [] }) => ({
    letter: { ...letter, payload: plain(letter.payload) },
    ...(original ? { original: plain(original) } : {}),
    waitsFor: waitsFor.toSorted(),
  }))
}

function plain(payload: DeadLetter['payload']): DeadLetter['payload'] {
  return { ...payload, bytes: Uint8Array.from(payload.bytes) }
}

/**
 * Tests copying for one pair of stores; skipped if a server is missing. `inShort`, only
 * `npm run deep` tests what does not depend on the stores.
 */
export function runCopy(
  fromPlace: Place,
  toPlace: Place,
  { missing, inShort = false }: { missing?: string | undefined; inShort?: boolean } = {},
): void {
  describe.skipIf(missing)(`copyStore from ${fromPlace.kind} to ${toPlace.kind}`, () => {
    const isShort = inShort && !isDeep
    const isSlow = fromPlace.slow ?? toPlace.slow ?? false
    let from: Store
    let to: Store
    let close: () => Promise<unknown>

    beforeEach(async () => {
      const opened = [await fromPlace.open(), await toPlace.open()]
      ;[from, to] = opened.map(({ store }) => store) as [Store, Store]
      close = () => Promise.all(opened.map((one) => one.close()))
    })
    afterEach(() => close())

    const copy = (options: Partial<CopyOptions> = {}) => copyStore(from, to, { source, ...options })

    async function expectSame(): Promise<void> {
      expect(await storedIn(to)).toEqual(await storedIn(from))
      for (const key of ['state', 'queue', 'tag', 'group'] as const)
        expect(await to.tally(key, everything)).toEqual(await from.tally(key, everything))
      const totals = await from.totals()
      expect(await to.totals()).toHaveLength(totals.length)
      expect(await to.totals()).toEqual(expect.arrayContaining(totals))
    }

    it('copies letters, edits, records, totals, leases and dependencies', async () => {
      const { edited, waiting, awaited, leased } = await liveIn(from)
      await from.add(mixedLetters())
      const report = await copy()
      expect(report).toMatchObject({ ok: true, verdict: { records: 2 } })
      expect(report.verdict!.hash.to).toBe(report.verdict!.hash.from)
      await expectSame()
      const original = (await to.original(edited.id))!
      expect(new TextDecoder().decode(original.bytes)).toBe('as captured')
      expect((await to.records.get('edit', `${edited.id}:1`))!.value).toEqual({
        payload: 'as captured',
      })
      expect(await to.records.kinds()).toEqual(['copy', 'edit'])

      await to.apply([resolve(awaited, by)])
      const claim = { worker: 'w2', limit: 1, leaseMs: 1000 }
      const { letters } = await to.claim({ ...claim, queues: [waiting.queue] })
      expect(letters.map(({ id }) => id)).toEqual([waiting.id])
      expect((await to.claim({ ...claim, queues: [leased.queue] })).letters).toEqual([])
      const settled = resolve(leased, { ...by, actor: 'w', guard: 'epoch' })
      expect(await to.apply([settled])).toEqual(['written'])
    })

    it('copies any set of letters to an equal set', { timeout: 60_000 }, async () => {
      const run = async (letters: StoredLetter[]): Promise<void> => {
        const opened = [await fromPlace.open(), await toPlace.open()]
        ;[from, to] = opened.map(({ store }) => store) as [Store, Store]
        try {
          await from.keep(letters)
          expect(await copy()).toMatchObject({ ok: true })
          await expectSame()
        } finally {
          await Promise.all(opened.map((one) => one.close()))
        }
      }
      await close()
      close = async () => {}
      await fc.assert(fc.asyncProperty(letterSets, run), {
        numRuns: isSlow ? atDepth(2, 8) : atDepth(inShort ? 5 : 15, 25),
      })
    })

    it('accepts a renewed lease and a resolved dependency', async () => {
      const { leased, awaited } = await liveIn(from)
      await copy()
      const { id, epoch } = leased
      expect(await from.renew([{ id, epoch }], 2 * 86_400_000)).toEqual([true])
      await from.apply([resolve(awaited, by)])
      expect(await copy()).toMatchObject({ ok: true, copied: 1 })
    })

    // These need letters for several pages.
    if (isShort && isSlow) return

    it('copies letters and records that are new or changed since the last copy', async () => {
      const { edited, twins } = await liveIn(from)
      await from.add(Array.from({ length: 300 }, () => aLetter()))
      await copy()
      const late = aLetter({ id: '00000000-0000-7000-8000-000000000000' })
      await from.add([aLetter(), late])
      const [now] = await from.get([edited.id])
      await from.apply([archive(now!, by)])
      await from.records.put('edit', `${twins[0]!.id}:1`, 'new')
      await from.records.put('edit', `${edited.id}:2`, 'other')
      expect(await copy()).toMatchObject({ ok: true, copied: 3, verdict: { records: 3 } })
      await expectSame()
    })

    it('continues after a stop', async () => {
      const letters = Array.from({ length: 510 }, () => aLetter())
      await from.add(letters)
      const stop = new AbortController()
      const onProgress = ({ letters: done }: CopyProgress): void => {
        if (done >= 500) stop.abort()
      }
      const first = await copy({ signal: stop.signal, onProgress })
      expect(first).toEqual({ ok: false, copied: 500 })
      const seen: CopyProgress[] = []
      const second = await copy({ onProgress: (progress) => seen.push(progress) })
      expect(second).toMatchObject({ ok: true, copied: 10, verdict: { letters: 510 } })
      expect(seen[0]!.letters).toBeGreaterThan(250)
      await expectSame()
    })

    it('lets only one of two concurrent copies write', async () => {
      await from.add(Array.from({ length: 300 }, () => aLetter()))
      let other: Promise<string> | undefined
      const first = copy({ onProgress: () => void (other ??= settled(copy())) })
      const results = new Set([await settled(first), await other])
      expect(results).toEqual(new Set(['VERSION_CONFLICT', 'ok']))
      await expectSame()
    })

    // The stores have no part in the following rules.
    if (isShort) return

    it('copies an empty store', async () => {
      expect(await copy()).toMatchObject({ ok: true, copied: 0, verdict: { letters: 0 } })
      expect(await copy()).toMatchObject({ ok: true, copied: 0 })
    })

    it('stops during verification, too', async () => {
      await from.add([aLetter()])
      const stop = new AbortController()
      const report = await copy({
        signal: stop.signal,
        onProgress: ({ doing }) => doing === 'verify' && stop.abort(),
      })
      expect(report).toEqual({ ok: false, copied: 1 })
      expect(await copy()).toMatchObject({ ok: true, copied: 0 })
    })

    it('writes nothing with verifyOnly', async () => {
      await from.add([aLetter(), aLetter()])
      const report = await copy({ verifyOnly: true })
      expect(report).toMatchObject({ ok: false, copied: 0 })
      expect(report.verdict!.differences.first).toContainEqual({
        kind: 'count',
        name: 'state pending',
        why: '2 in the source, 0 in the target',
      })
      expect(await to.records.kinds()).toEqual([])
      expect(await to.tally('state')).toEqual(new Map())
      await copy()
      expect(await copy({ verifyOnly: true })).toMatchObject({ ok: true })
    })

    it.each([
      ['a letter', () => to.add([aLetter({ state: 'archived' })])],
      ['a record', () => to.records.put('edit', 'a', 1)],
      ['totals', () => to.add([aLetter()]).then(() => to.remove({ queue: 'orders' }))],
    ])('rejects a target that already has %s', async (_, fill) => {
      await from.add([aLetter()])
      await fill()
      await expect(copy()).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('not empty'),
      })
      expect(await to.stored((await storedIn(from)).map(({ letter }) => letter.id))).toEqual([])
      expect(await to.records.get('copy', 'source')).toBeUndefined()
    })

    it('rejects a target with a copy of another source', async () => {
      await copy()
      const other = copy({ source: 'test:other' })
      await expect(other).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('test:source'),
      })
    })

    it('rejects a target that was used since the copy, and leaves it unchanged', async () => {
      const letter = aLetter()
      await from.add([letter])
      await copy()
      await to.apply([resolve(letter, by)])
      await from.apply([archive(letter, by), archive(letter, by)])
      const before = await storedIn(to)
      await expect(copy()).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('used'),
      })
      expect(await storedIn(to)).toEqual(before)
    })

    it('reports each kind of difference', async () => {
      const [missing, changed, newer] = [aLetter(), aLetter(), aLetter()]
      const extra = aLetter({ queue: 'elsewhere' })
      await from.add([missing, changed, newer])
      await from.records.put('edit', 'a', 1)
      await from.records.put('edit', 'b', 1)
      await to.keep([
        { letter: { ...changed, metadata: { odd: true } } },
        { letter: { ...newer, version: 9 } },
        { letter: extra },
      ])
      await to.records.put('edit', 'b', 2)
      await to.records.put('edit', 'c', 1)
      const { verdict, ok } = await copy({ verifyOnly: true })
      expect(ok).toBe(false)
      expect(verdict!.hash.to).not.toBe(verdict!.hash.from)
      expect(verdict!.differences.first).toEqual([
        { kind: 'letter', name: missing.id, why: 'missing in the target' },
        { kind: 'letter', name: changed.id, why: 'not the same in the target' },
        { kind: 'letter', name: newer.id, why: 'newer in the target' },
        { kind: 'count', name: 'queue orders', why: '3 in the source, 2 in the target' },
        { kind: 'count', name: 'queue elsewhere', why: '0 in the source, 1 in the target' },
        { kind: 'letter', name: extra.id, why: 'only in the target' },
        { kind: 'record', name: 'edit a', why: 'missing in the target' },
        { kind: 'record', name: 'edit b', why: 'not the same in the target' },
        { kind: 'record', name: 'edit c', why: 'only in the target' },
        expect.objectContaining({ kind: 'total', name: 'capture medium orders' }),
      ])
    })

    it('reports the first of many differences, and their number', async () => {
      await from.add(Array.from({ length: 300 }, () => aLetter()))
      const { differences } = (await copy({ verifyOnly: true })).verdict!
      expect(differences.first).toHaveLength(20)
      expect(differences.count).toBe(300 + 3)
    })
  })
}

/** The outcome of a copy: ok, not ok, or an error code. */
function settled(copying: Promise<CopyReport>): Promise<string> {
  return copying.then(
    ({ ok }) => (ok ? 'ok' : 'not ok'),
    (error: { code: string }) => error.code,
  )
}

const timestamps = fc.constantFrom(by.at, '2025-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z')
const strings = fc.string({ unit: 'binary', maxLength: 12 })
const bytes = fc.uint8Array({ maxLength: 64 })
const payloads = fc.record({ bytes, contentType: strings, size: fc.nat() })
const removedId = '00000000-0000-7000-8000-00000000dead'

const stored: fc.Arbitrary<StoredLetter> = fc
  .record({
    state: fc.constantFrom(...states),
    priority: fc.constantFrom(...priorities),
    queue: strings.filter((name) => name !== ''),
    version: fc.integer({ min: 1, max: 99 }),
    occurrences: fc.integer({ min: 1, max: 9 }),
    retries: fc.nat(20),
    lane: fc.option(strings, { nil: undefined }),
    dedupeKey: fc.option(fc.constantFrom('k1', 'k2'), { nil: undefined }),
    waits: fc.option(fc.subarray([removedId, 'b', 'c']), { nil: undefined }),
    tags: fc.array(strings, { maxLength: 3 }),
    metadata: fc.dictionary(strings, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
    message: strings,
    at: timestamps,
    entries: fc.nat(60),
    payload: payloads,
    original: fc.option(payloads, { nil: undefined }),
  })
  .map(({ waits, message, at, entries, payload, original, lane, dedupeKey, ...rest }) => {
    const letter = aLetter({ state: rest.state })
    const history = Array.from({ length: Math.min(entries, 50) }, (_, n) => ({
      ...letter.history[0]!,
      note: `${n}`,
    }))
    return {
      letter: {
        ...letter,
        ...rest,
        metadata: JSON.parse(JSON.stringify(rest.metadata)) as DeadLetter['metadata'],
        failure: { name: 'Error', message, causes: [], at },
        updatedAt: at,
        history,
        historyOmitted: entries - history.length,
        payload: { ...payload, version: original ? 2 : 1 },
        ...(lane === undefined ? {} : { lane }),
        ...(dedupeKey === undefined ? {} : { dedupeKey }),
        ...(waits ? { dependsOn: [removedId, 'b', 'c'] } : {}),
      },
      ...(original ? { original: { ...original, version: 1 } } : {}),
      ...(waits && waits.length > 0 ? { waitsFor: waits } : {}),
    }
  })

const letterSets = fc.array(stored, { maxLength: 20 })

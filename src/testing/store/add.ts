import assert from 'node:assert/strict'
import { states } from '../../letter/letter.ts'
import { aLetter } from '../a-letter.ts'
import { openAnother, checkOn, needsShared } from './check.ts'
import { ids, kinds, expectSameLetter, getLetter, totalOf } from './steps.ts'

const check = checkOn('add')

export const addChecks = [
  check('returns a stored letter unchanged', async ({ store }) => {
    const letter = aLetter()
    assert.deepEqual(await store.add([letter]), [{ kind: 'added' }])
    expectSameLetter(await getLetter(store, letter.id), letter)
  }),

  check('stores every field of a letter', async ({ store }) => {
    const at = '2026-01-01T00:00:00.000Z'
    const cause = { name: 'SocketError', message: 'reset', code: 'ECONNRESET', causes: [], at }
    const letter = aLetter({
      dedupeKey: 'order-1',
      lane: 'customer-1',
      dependsOn: ['00000000-0000-7000-8000-000000000001'],
      tenant: 'acme',
      source: {
        kind: 'pipeline',
        cluster: 'c',
        graph: 'g',
        node: 'n',
        topic: 't',
        partition: 3,
        offset: '9007199254740993',
        streamId: 's',
        hops: 2,
      },
      app: { name: 'shop', version: '1.2.3', host: 'web-1', pid: 4711 },
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      headers: { 'content-type': 'text/plain', 'x-Case': 'Kept' },
      task: { id: 'task-1', description: 'does a thing', source: 'cron' },
      github: { owner: 'o', repo: 'r', entityNumber: 7, entityType: 'issue' },
      metadata: { nested: { list: [1, 'two', null, true, { three: 3.5 }] }, '': 'empty key' },
      tags: ['b', 'a', 'b'],
      failure: {
        name: 'HttpError',
        message: 'upstream',
        code: 'E_UPSTREAM',
        status: 503,
        retryAfterMs: 1500,
        stack: 'HttpError: upstream\n    at somewhere',
        causes: [cause],
        at,
      },
      policy: { kind: 'exponential', baseMs: 1000, factor: 2, maxMs: 60_000, jitter: 0.25 },
      replays: 2,
      backoffMs: 4000,
      expiresAt: '2027-01-01T00:00:00.000Z',
      review: { neededSince: at, decidedBy: 'ada', decidedAt: at, decision: 'requeue', note: 'n' },
      historyOmitted: 12,
    })
    await store.add([letter])
    expectSameLetter(await getLetter(store, letter.id), letter)
  }),

  check('stores letters in every state', async ({ store }) => {
    const letters = states.map((state) => aLetter({ state }))
    await store.add(letters)
    const actual = await store.get(ids(letters))
    for (const [at, letter] of letters.entries()) expectSameLetter(actual[at]!, letter)
  }),

  check('returns one result per letter, in order', async ({ store }) => {
    const [first, second, third] = [aLetter(), aLetter(), aLetter()]
    await store.add([second])
    const results = await store.add([first, second, third])
    assert.deepEqual(results, [
      { kind: 'added' },
      { kind: 'duplicate', of: second.id, by: 'id', occurrences: 1 },
      { kind: 'added' },
    ])
    assert.deepEqual(await store.tally('state'), new Map([['pending', 3]]))
  }),

  check('accepts an empty batch', async ({ store }) => {
    assert.deepEqual(await store.add([]), [])
  }),

  check(
    'keeps the first of two letters with the same id, whatever the second contains',
    async ({ store }) => {
      const letter = aLetter()
      const bytes = new TextEncoder().encode('other bytes')
      const rival = { ...aLetter({ queue: 'other' }), id: letter.id }
      rival.payload = { ...rival.payload, bytes, size: bytes.length }
      await store.add([letter])
      const [result] = await store.add([rival])
      assert.deepEqual(result, { kind: 'duplicate', of: letter.id, by: 'id', occurrences: 1 })
      expectSameLetter(await getLetter(store, letter.id), letter)
      assert.deepEqual(await store.tally('queue'), new Map([['orders', 1]]))
      assert.equal(await totalOf(store, 'occur'), 0)
    },
  ),

  check('detects a duplicate id within one batch', async ({ store }) => {
    const letter = aLetter()
    assert.deepEqual(kinds(await store.add([letter, letter])), ['added', 'duplicate'])
    assert.equal((await store.find({})).items.length, 1)
  }),

  check('detects a duplicate id in every state', async ({ store }) => {
    const letters = states.map((state) => aLetter({ state }))
    await store.add(letters)
    const results = await store.add(letters)
    assert.ok(results.every((result) => result.kind === 'duplicate' && result.by === 'id'))
  }),

  check('keeps one letter when one id is added many times at once', async ({ store }) => {
    const letter = aLetter()
    const results = await Promise.all(Array.from({ length: 20 }, () => store.add([letter])))
    assert.equal(kinds(results.flat()).filter((kind) => kind === 'added').length, 1)
    expectSameLetter(await getLetter(store, letter.id), letter)
  }),

  check(
    'keeps one letter when two handles add one id at once',
    async (bench) => {
      const other = await openAnother(bench)
      const letters = Array.from({ length: 20 }, () => aLetter())
      const results = await Promise.all(
        letters.flatMap((letter) => [bench.store.add([letter]), other.add([letter])]),
      )
      assert.equal(kinds(results.flat()).filter((kind) => kind === 'added').length, letters.length)
      assert.deepEqual(await other.tally('state'), new Map([['pending', letters.length]]))
    },
    needsShared,
  ),

  check('gets letters in the given order, without missing ones', async ({ store }) => {
    const [first, second, third] = [aLetter(), aLetter(), aLetter()]
    await store.add([first, second, third])
    const missing = '00000000-0000-7000-8000-000000000000'
    const letters = await store.get([third.id, missing, first.id])
    assert.deepEqual(ids(letters), [third.id, first.id])
    assert.deepEqual(await store.get([]), [])
    assert.deepEqual(await store.get([missing]), [])
    assert.deepEqual(await store.get(['not an id', '']), [])
  }),

  check('is not affected by later changes to a letter object', async ({ store }) => {
    const letter = aLetter({ tags: ['a'], metadata: { deep: { n: 1 } }, headers: { h: '1' } })
    const asAdded = structuredClone(letter)
    await store.add([letter])
    overwrite(letter)
    overwrite(await getLetter(store, letter.id))
    overwrite((await store.find({ payload: true })).items[0]!)
    const first = await store.original(letter.id)
    first!.bytes.fill(0)
    expectSameLetter(await getLetter(store, letter.id), asAdded)
    assert.deepEqual(
      Uint8Array.from((await store.original(letter.id))!.bytes),
      asAdded.payload.bytes,
    )
  }),
]

function overwrite(letter: ReturnType<typeof aLetter>): void {
  letter.payload.bytes.fill(0)
  letter.tags.push('overwritten')
  letter.history.length = 0
  letter.failure.message = 'overwritten'
  ;(letter.metadata['deep'] as { n: number }).n = 2
  letter.headers!['h'] = 'overwritten'
  letter.state = 'archived'
}

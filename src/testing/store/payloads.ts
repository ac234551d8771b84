import assert from 'node:assert/strict'
import type { Json, Payload } from '../../letter/letter.ts'
import { edit, withChange } from '../../letter/moves.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, needsDurable, reopen } from './check.ts'
import { hostileNames } from './mixed.ts'
import {
  claimOne,
  eachOf,
  ids,
  kinds,
  person,
  expectSameLetter,
  getLetter,
  findAll,
} from './steps.ts'

const check = checkOn('payloads')

const payload = (bytes: Uint8Array, extra: Partial<Payload> = {}): Payload => ({
  bytes,
  contentType: 'application/octet-stream',
  size: bytes.length,
  version: 1,
  ...extra,
})

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
const megabyte = Uint8Array.from({ length: 2 ** 20 }, (_, n) => (n * 31 + (n >> 8)) % 256)

/** Lone surrogates, NUL, emoji, a byte order mark, line separators, right-to-left marks. */
const unusualString = 'a\ud800b\udfffc\0d 🦊 \ufeff\u2028\u202e\r\n\t"\\'

export const payloadChecks = [
  check('returns every byte unchanged', async (bench) => {
    const { store } = bench
    for (const bytes of [
      everyByte,
      new Uint8Array(0),
      megabyte,
      Uint8Array.of(0),
      Uint8Array.of(255, 254),
    ]) {
      const letter = aLetter({ payload: payload(bytes) })
      await store.add([letter])
      const claimed = await claimOne(bench)
      for (const got of [await getLetter(store, letter.id), claimed])
        assert.deepEqual(Uint8Array.from(got.payload.bytes), bytes)
      assert.deepEqual(Uint8Array.from((await store.original(letter.id))!.bytes), bytes)
    }
  }),

  check('accepts a view of a larger buffer', async ({ store }) => {
    const letter = aLetter({ payload: payload(megabyte.subarray(100, 200)) })
    await store.add([letter])
    const { bytes } = (await getLetter(store, letter.id)).payload
    assert.deepEqual(Uint8Array.from(bytes), megabyte.slice(100, 200))
    assert.equal(bytes.length, 100)
  }),

  check('stores the metadata of a payload', async ({ store }) => {
    const facts = {
      lossy: true,
      restOf: 2,
      reference: 's3://bucket/key',
      keyId: 'k1',
      contentType: 'text/🦊',
    }
    const letter = aLetter({ payload: payload(everyByte, { ...facts, size: 5_000_000_000 }) })
    await store.add([letter])
    expectSameLetter(await getLetter(store, letter.id), letter)
    const { bytes: _, ...rest } = letter.payload
    assert.deepEqual((await store.find({})).items[0]!.payload, rest)
  }),

  check('returns the captured payload after edits', async (bench) => {
    const { store } = bench
    let letter = aLetter({ payload: payload(everyByte, { keyId: 'k1' }) })
    const first = letter.payload
    await store.add([letter])
    for (const version of [2, 3]) {
      const next = payload(Uint8Array.of(version), { version, contentType: 'text/plain' })
      const change = edit(letter, person(bench), { payload: next })
      assert.deepEqual(await store.apply([change]), ['written'])
      letter = withChange(letter, change)
      expectSameLetter(await getLetter(store, letter.id), letter)
      const original = (await store.original(letter.id))!
      assert.deepEqual({ ...original, bytes: Uint8Array.from(original.bytes) }, first)
    }
    assert.deepEqual(Uint8Array.from((await claimOne(bench)).payload.bytes), Uint8Array.of(3))
    assert.equal(await store.original('00000000-0000-7000-8000-000000000000'), undefined)
  }),

  check(
    'keeps bytes, edits and unusual strings across a restart',
    async (bench) => {
      const letter = aLetter({ payload: payload(megabyte), metadata: { odd: unusualString } })
      await bench.store.add([letter])
      const next = payload(everyByte, { version: 2 })
      const change = edit(letter, person(bench), { payload: next })
      await bench.store.apply([change])
      const store = await reopen(bench)
      expectSameLetter(await getLetter(store, letter.id), withChange(letter, change))
      assert.deepEqual(Uint8Array.from((await store.original(letter.id))!.bytes), megabyte)
    },
    needsDurable,
  ),

  check('stores unusual strings unchanged', async ({ store }) => {
    const failure = {
      name: unusualString,
      message: unusualString,
      code: unusualString,
      stack: unusualString,
      causes: [],
      at: '2026-01-01T00:00:00.000Z',
    }
    const letter = aLetter({
      failure,
      metadata: { [unusualString]: unusualString },
      headers: { [unusualString]: unusualString },
      source: {
        kind: 'operation',
        type: unusualString,
        context: { [unusualString]: [unusualString] },
      },
      task: { id: unusualString, description: unusualString, source: unusualString },
      history: [
        {
          at: failure.at,
          actor: unusualString,
          action: 'capture',
          from: null,
          to: 'pending',
          note: unusualString,
        },
      ],
    })
    await store.add([letter])
    expectSameLetter(await getLetter(store, letter.id), letter)
  }),

  check('stores keys such as __proto__ as plain data', async (bench) => {
    const { store } = bench
    const text = '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":"x","":0}'
    const metadata = JSON.parse(text) as { [key: string]: Json }
    const headers = JSON.parse('{"__proto__":"a","hasOwnProperty":"b"}') as Record<string, string>
    const letter = aLetter({ metadata, headers, tags: ['__proto__', 'constructor'] })
    await store.add([letter])
    const stored = await getLetter(store, letter.id)
    assert.deepEqual(Object.keys(stored.metadata).toSorted(), Object.keys(metadata).toSorted())
    assert.deepEqual(Object.keys(stored.headers!).toSorted(), Object.keys(headers).toSorted())
    assert.equal(JSON.stringify(stored.metadata['__proto__']), '{"polluted":true}')
    const tags = new Map([
      ['__proto__', 1],
      ['constructor', 1],
    ])
    assert.deepEqual(await store.tally('tag'), tags)
    const [claimed] = (await store.claim({ worker: '__proto__', limit: 1, leaseMs: 100 })).letters
    assert.equal(JSON.stringify(claimed!.metadata['__proto__']), '{"polluted":true}')
    assert.equal(({} as { polluted?: boolean }).polluted, undefined)
  }),

  check('accepts any name for a queue, a lane, a tag, a group or a worker', async (bench) => {
    const { store } = bench
    const letters = hostileNames.map((name) =>
      aLetter({
        queue: name,
        lane: name,
        tags: [name],
        fingerprint: name,
        tenant: name,
        dedupeKey: name,
      }),
    )
    assert.deepEqual(
      kinds(await store.add(letters)),
      letters.map(() => 'added'),
    )
    for (const [n, name] of hostileNames.entries()) {
      const filters = [
        { queue: name },
        { lane: name },
        { tag: name },
        { group: name },
        { tenant: name },
      ]
      await eachOf(filters, async (filter) =>
        assert.deepEqual(
          ids(await findAll(store, filter)),
          [letters[n]!.id],
          JSON.stringify(filter),
        ),
      )
      const claimed = await claimOne(bench, { queues: [name], worker: name })
      assert.equal(claimed.id, letters[n]!.id)
      assert.equal(claimed.lease!.worker, name)
      assert.equal((await store.tally('queue')).get(name), 1)
    }
    assert.equal((await store.totals()).length, 2 * hostileNames.length)
  }),
]

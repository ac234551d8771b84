import assert from 'node:assert/strict'
import type { Json } from '../../letter/letter.ts'
import { toMs } from '../../letter/time.ts'
import { openAnother, checkOn, needsShared } from './check.ts'
import { hostileNames } from './mixed.ts'
import { eachOf, ids, expectRejection } from './steps.ts'

const check = checkOn('records')

const hostileJson = JSON.parse(
  '{"__proto__":{"polluted":true},"constructor":1,"":null,"deep":[[[{"a":[]}]]],"n":1.5e300,"lone":"\\ud800","nul":"\\u0000"}',
) as Json

export const recordChecks = [
  check('stores a document and counts its versions', async (bench) => {
    const { records } = bench.store
    assert.equal(await records.get('kind', 'a'), undefined)
    assert.equal(await records.put('kind', 'a', { n: 1 }), 'written')
    assert.equal(await records.put('kind', 'a', { n: 2 }), 'written')
    const record = await records.get('kind', 'a')
    assert.deepEqual(record, { id: 'a', version: 2, value: { n: 2 }, updatedAt: record!.updatedAt })
    assert.ok(Math.abs(toMs(record.updatedAt) - bench.now()) < 5000)
  }),

  check('writes only if the expected version matches', async ({ store: { records } }) => {
    assert.equal(
      await records.put('kind', 'a', 'x', 1),
      'conflict',
      'the record does not exist yet',
    )
    assert.equal(await records.put('kind', 'a', 'first', 0), 'written')
    assert.equal(
      await records.put('kind', 'a', 'second', 0),
      'conflict',
      'the record exists already',
    )
    assert.equal(await records.put('kind', 'a', 'second', 1), 'written')
    assert.equal(
      await records.put('kind', 'a', 'third', 1),
      'conflict',
      'the record has a newer version',
    )
    const { value, version } = (await records.get('kind', 'a'))!
    assert.deepEqual({ value, version }, { value: 'second', version: 2 })
  }),

  check('restarts versions after a removal', async ({ store: { records } }) => {
    assert.equal(await records.remove('kind', 'a'), false)
    await records.put('kind', 'a', 1)
    assert.equal(await records.remove('kind', 'a'), true)
    assert.equal(await records.remove('kind', 'a'), false)
    assert.equal(await records.get('kind', 'a'), undefined)
    assert.equal(await records.put('kind', 'a', 2, 0), 'written')
    assert.equal((await records.get('kind', 'a'))!.version, 1)
  }),

  check('accepts one of many concurrent writes', async ({ store: { records } }) => {
    await records.put('kind', 'a', 0, 0)
    const puts = Array.from({ length: 20 }, (_, n) => records.put('kind', 'a', n, 1))
    const results = await Promise.all(puts)
    assert.equal(results.filter((result) => result === 'written').length, 1)
    const { value, version } = (await records.get('kind', 'a'))!
    assert.deepEqual({ value, version }, { value: results.indexOf('written'), version: 2 })
  }),

  check(
    'accepts one of two concurrent writes through two handles',
    async (bench) => {
      const other = await openAnother(bench)
      for (let n = 0; n < 10; n++) {
        const results = await Promise.all([
          bench.store.records.put('kind', `${n}`, 'a', 0),
          other.records.put('kind', `${n}`, 'b', 0),
        ])
        assert.deepEqual(results.toSorted(), ['conflict', 'written'])
      }
    },
    needsShared,
  ),

  check('keeps kinds and ids apart', async ({ store: { records } }) => {
    await records.put('a', 'b/c', 1)
    await records.put('a/b', 'c', 2)
    await records.put('a', 'B/C', 3)
    assert.equal((await records.get('a', 'b/c'))!.value, 1)
    assert.equal((await records.get('a/b', 'c'))!.value, 2)
    assert.deepEqual(ids(await records.list('a')), ['B/C', 'b/c'])
    assert.deepEqual(await records.list('b'), [])
  }),

  check('lists by id, with after, prefix and limit', async ({ store: { records } }) => {
    const all = ['a', 'a%', 'a-1', 'a-2', 'a-3', 'aa', 'b', 'b_', 'bx']
    for (const id of all.toReversed()) await records.put('kind', id, id)
    assert.deepEqual(ids(await records.list('kind')), all)
    assert.deepEqual(ids(await records.list('kind', { after: 'a-2' })), [
      'a-3',
      'aa',
      'b',
      'b_',
      'bx',
    ])
    assert.deepEqual(ids(await records.list('kind', { prefix: 'a-' })), ['a-1', 'a-2', 'a-3'])
    assert.deepEqual(ids(await records.list('kind', { prefix: 'b_' })), ['b_'])
    assert.deepEqual(ids(await records.list('kind', { prefix: 'a%' })), ['a%'])
    assert.deepEqual(ids(await records.list('kind', { prefix: 'a-', after: 'a-1', limit: 1 })), [
      'a-2',
    ])
    assert.deepEqual(await records.list('kind', { limit: 0 }), [])
    assert.deepEqual(await records.list('kind', { prefix: 'zz' }), [])
  }),

  check('lists records with the given ids', async ({ store: { records } }) => {
    const many = Array.from({ length: 250 }, (_, n) => `n${n}`)
    const all = [...many, ...hostileNames]
    await Promise.all(['b', 'a', 'c', ...all].map((id) => records.put('kind', id, id)))
    await records.put('other', 'd', 1)
    await records.put('kind', 'b', 'again')
    const found = await records.list('kind', { ids: ['c', 'missing', 'b', 'c', 'd', ''] })
    const shown = found.map(({ id, version, value }) => ({ id, version, value }))
    assert.deepEqual(shown, [
      { id: 'b', version: 2, value: 'again' },
      { id: 'c', version: 1, value: 'c' },
    ])
    assert.deepEqual(found[0], await records.get('kind', 'b'))
    assert.deepEqual(await records.list('kind', { ids: [] }), [])
    assert.deepEqual(await records.list('none', { ids: ['a'] }), [])
    const listed = ids(await records.list('kind', { ids: all }))
    assert.deepEqual(listed.toSorted(), all.toSorted())
  }),

  check('rejects ids together with another key of a query', async ({ store: { records } }) => {
    for (const other of [{ prefix: 'a' }, { after: 'a' }, { limit: 1 }])
      await expectRejection('INVALID_INPUT', () => records.list('k', { ids: ['a'], ...other }))
    const unknown = { idss: ['a'] } as object
    await expectRejection('INVALID_INPUT', () => records.list('k', unknown))
  }),

  check('rejects an invalid limit', async ({ store: { records } }) => {
    for (const limit of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
      await expectRejection('INVALID_INPUT', () => records.list('k', { limit }))
    assert.deepEqual(await records.list('k', { limit: 0 }), [])
  }),

  check('accepts any JSON value and any name', async ({ store: { records } }) => {
    const values: Json[] = [null, false, 0, '', [], {}, 'x'.repeat(100_000), hostileJson]
    for (const [n, value] of values.entries()) {
      await records.put('values', `${n}`, value)
      assert.deepEqual((await records.get('values', `${n}`))!.value, value)
    }
    await eachOf(hostileNames, async (name) => {
      await records.put(name, name, name)
      assert.deepEqual(ids(await records.list(name)), [name])
      assert.equal((await records.get(name, name))!.value, name)
    })
    assert.equal(({} as { polluted?: boolean }).polluted, undefined)
  }),

  check('lists the kinds that have records', async ({ store: { records } }) => {
    assert.deepEqual(await records.kinds(), [])
    await eachOf(['worker', 'edit', 'Edit', 'edit/2', ...hostileNames], async (kind) => {
      for (const id of ['a', 'b']) await records.put(kind, id, 1)
    })
    await records.remove('worker', 'a')
    await records.remove('Edit', 'a')
    await records.remove('Edit', 'b')
    assert.deepEqual(
      await records.kinds(),
      ['worker', 'edit', 'edit/2', ...hostileNames].toSorted(),
    )
  }),

  check('is not affected by later changes to a value', async ({ store: { records } }) => {
    const value = { list: [1] }
    await records.put('kind', 'a', value)
    value.list.push(2)
    const got = (await records.get('kind', 'a'))!.value as { list: number[] }
    got.list.push(3)
    assert.deepEqual((await records.get('kind', 'a'))!.value, { list: [1] })
  }),
]

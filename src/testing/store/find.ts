import assert from 'node:assert/strict'
import type { DeadLetter } from '../../letter/letter.ts'
import { matches, orders, sortKey, type LetterFilter, type Order } from '../../letter/query.ts'
import { resolve } from '../../letter/moves.ts'
import type { TallyKey } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, type StoreBench } from './check.ts'
import { filtersOfPart, mixedFilters, mixedLetters } from './mixed.ts'
import { claim, eachOf, ids, expectRejection, expectSameLetter, findAll, worker } from './steps.ts'

const check = checkOn('find')

/** Calls `make` with 0 to `count - 1`. */
const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n))

/** A store that does not check its filters would read each of these as no condition. */
const badFilters: object[] = [
  { status: 'resolved' },
  { queue: 'orders', status: 'resolved' },
  { constructor: 'x' },
  { ['__proto__']: 'x' },
  { id: 'x' },
  { state: 'queued' },
  { state: ['pending', 'manual_review'] },
  { state: null },
  { category: 'sunspots' },
  { priority: 'urgent' },
  { policy: 'sometimes' },
  { policy: ['never'] },
  { reason: 'because' },
  { ids: 'abc' },
  { ids: [1] },
  { queue: 5 },
  { group: 5 },
  { group: ['f1', 5] },
  { sourceId: 5 },
  { metadata: 'customer' },
  { metadata: {} },
  { metadata: { customer: undefined } },
  { metadata: { customer: { name: 'x' } } },
  { metadata: { amount: Number.NaN } },
  { since: 'yesterday' },
  { until: 1_767_225_600_000 },
  { settledBefore: '2026-01-01' },
  { expiresBefore: new Date(0) },
  { dependent: 'yes' },
  { limit: 5, state: 'pending', unknown: true },
]

const badQueries: object[] = [
  { limit: 'x' },
  { cursor: 5 },
  { payload: 1 },
  { partial: 'yes' },
  { sort: 'newest' },
]

export const findChecks = [
  ...orders.map((order, at) =>
    check(`agrees with matches() on every kind of filter, order ${order}`, async (bench) => {
      const { store } = bench
      const letters = await addMixed(bench)
      const filters = mixedFilters(letters, store.powers)
      await eachOf(filtersOfPart(bench, filters, at, orders.length), async (filter) => {
        const expected = ids(
          sortLetters(
            letters.filter((letter) => matches(letter, filter)),
            order,
          ),
        )
        const found = await findAll(store, { ...filter, order, limit: 7 })
        assert.deepEqual(ids(found), expected, `${order} ${JSON.stringify(filter)}`)
      })
    }),
  ),

  check('lists the newest first by default', async ({ store }) => {
    const letters = times(5, () => aLetter())
    await store.add(letters)
    assert.deepEqual(ids((await store.find({})).items), ids(letters.toReversed()))
  }),

  check('returns summaries without payload bytes and history by default', async ({ store }) => {
    const letter = aLetter({ tags: ['a'], metadata: { a: 1 }, historyOmitted: 3 })
    await store.add([letter])
    const { history: _, ...summary } = letter
    const { bytes: __, ...payload } = letter.payload
    const { items } = await store.find({})
    assert.deepEqual(items, [{ ...summary, payload }])
  }),

  check('returns complete letters with payload: true', async ({ store }) => {
    const letter = aLetter()
    await store.add([letter])
    const { items } = await store.find({ payload: true })
    expectSameLetter(items[0]!, letter)
  }),

  check('returns 50 letters by default, and none for limit 0', async ({ store }) => {
    await store.add(times(60, () => aLetter()))
    const page = await store.find({})
    assert.equal(page.items.length, 50)
    assert.ok(page.cursor)
    assert.deepEqual(await store.find({ limit: 0 }), { items: [] })
  }),

  check('has no cursor on the last page, even when it is full', async ({ store }) => {
    await store.add(times(10, () => aLetter()))
    const first = await store.find({ limit: 5 })
    const second = await store.find({ limit: 5, cursor: first.cursor! })
    assert.equal(second.items.length, 5)
    assert.equal('cursor' in second, false)
  }),

  check('returns a page of 1000 letters', async ({ store }) => {
    await store.add(times(1001, () => aLetter()))
    const page = await store.find({ limit: 1000 })
    assert.equal(page.items.length, 1000)
    const rest = await store.find({ limit: 1000, cursor: page.cursor! })
    assert.equal(rest.items.length, 1)
  }),

  ...orders.map((order) =>
    check(`skips and repeats no letter during adds and removals, order ${order}`, async (bench) => {
      const { store } = bench
      const at = '2026-01-01T00:00:00.000Z'
      const made = times(80, (n) =>
        n % 2 ? aLetter({ retryAt: at }) : aLetter({ state: 'resolved', settledAt: at }),
      )
      const late = made.filter((_, n) => n % 5 === 0)
      const removed = made.filter((_, n) => n % 5 === 1)
      const steady = made.filter((_, n) => n % 5 > 1)
      await store.add([...steady, ...removed])
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.find({ order, limit: 7, ...(cursor ? { cursor } : {}) })
        seen.push(...ids(page.items))
        cursor = page.cursor
        await store.add(late.splice(0, 3))
        await store.remove({ ids: ids(removed.splice(0, 3)) })
      } while (cursor !== undefined)
      assert.equal(new Set(seen).size, seen.length, 'no letter is repeated')
      assert.deepEqual(
        ids(steady).filter((id) => !seen.includes(id)),
        [],
        'no letter is skipped',
      )
    }),
  ),

  check(
    'lists and claims letters due before 1970, and lists letters due in 9999',
    async (bench) => {
      const { store } = bench
      const letters = [
        '9999-12-31T23:59:59.999Z',
        '2026-01-01T00:00:00.000Z',
        '0001-01-01T00:00:00.000Z',
      ].map((retryAt) => aLetter({ retryAt }))
      await store.add(letters)
      const [last, middle, first] = letters
      const found = await findAll(store, { order: 'due', limit: 1 })
      assert.deepEqual(ids(found), ids([first!, middle!, last!]))
      assert.deepEqual(ids(await claim(bench)), ids([first!, middle!]))
    },
  ),

  check('lists letters settled before 1970', async ({ store }) => {
    const letters = [
      '1969-12-31T23:59:59.999Z',
      '2026-01-01T00:00:00.000Z',
      '0001-01-01T00:00:00.000Z',
    ].map((settledAt) => aLetter({ state: 'resolved', settledAt }))
    await store.add(letters)
    const [second, third, first] = letters
    const found = await findAll(store, { order: 'settled', limit: 1 })
    assert.deepEqual(ids(found), ids([first!, second!, third!]))
    const settledBefore = '1970-01-01T00:00:00.000Z'
    assert.equal((await findAll(store, { order: 'settled', settledBefore, limit: 1 })).length, 2)
  }),

  check('finds a single matching letter among thousands', async ({ store }) => {
    const cases: [LetterFilter, DeadLetter][] = [
      [{ lane: 'a' }, aLetter({ lane: 'a' })],
      [{ tenant: 'a' }, aLetter({ tenant: 'a' })],
      [{ tag: 'a' }, aLetter({ tags: ['a'] })],
      [{ group: 'f2' }, aLetter({ fingerprint: 'f2' })],
      [{ reason: 'max-hops' }, aLetter({ state: 'parked', reason: 'max-hops' })],
      [{ dependent: true }, aLetter({ dependsOn: [aLetter().id] })],
      [{ sourceId: 'wf_abc123' }, aLetter({ source: workflowOf('wf_abc123') })],
      [{ metadata: { customer: 'x' } }, aLetter({ metadata: { customer: 'x' } })],
    ]
    await store.add([...times(2100, () => aLetter()), ...cases.map(([, letter]) => letter)])
    const queries = cases.flatMap(([filter, { id, state }]) =>
      [{}, { state }, { state, queue: 'orders' }].flatMap((narrower) =>
        orders.map((order) => ({ id, query: { ...filter, ...narrower, order } })),
      ),
    )
    await eachOf(queries, async ({ id, query }) =>
      assert.deepEqual(ids(await findAll(store, query)), [id], JSON.stringify(query)),
    )
  }),

  check('continues from the cursor of a removed letter', async ({ store }) => {
    const letters = times(6, () => aLetter())
    await store.add(letters)
    const page = await store.find({ order: 'oldest', limit: 3 })
    await store.remove({ ids: ids(letters.slice(1, 4)) })
    const next = await store.find({ order: 'oldest', limit: 3, cursor: page.cursor! })
    assert.deepEqual(ids(next.items), ids(letters.slice(4)))
  }),

  check('rejects an invalid cursor, or the cursor of another order', async ({ store }) => {
    await store.add([aLetter(), aLetter()])
    const { cursor } = await store.find({ order: 'oldest', limit: 1 })
    const loneSurrogates = btoa(String.raw`["newest","\ud800","\ud800"]`)
    const bad = ['', 'nonsense', '%%%', btoa('[]'), btoa('["newest",1,2]'), btoa('{}'), cursor!]
    for (const text of [...bad, loneSurrogates])
      await expectRejection('INVALID_INPUT', () => store.find({ order: 'newest', cursor: text }))
  }),

  check('finds all letters of a source id in every state', async (bench) => {
    const { store } = bench
    const letters = times(3, () => aLetter({ source: workflowOf('wf_1') }))
    await store.add([...letters, aLetter({ source: workflowOf('wf_2') })])
    const [claimed] = await claim(bench, { limit: 1 })
    await store.apply([resolve(claimed!, worker(bench))])
    assert.deepEqual(ids(await findAll(store, { sourceId: 'wf_1', order: 'oldest' })), ids(letters))
    await store.remove({ ids: [letters[1]!.id] })
    assert.deepEqual(
      ids(await findAll(store, { sourceId: 'wf_1', order: 'oldest', limit: 1 })),
      ids([letters[0]!, letters[2]!]),
    )
    assert.equal(await store.remove({ sourceId: 'wf_1' }), 2)
    assert.deepEqual((await store.find({ sourceId: 'wf_1' })).items, [])
  }),

  check('finds more letters of one source id than one scan step reads', async ({ store }) => {
    const letters = times(1100, () => aLetter({ source: workflowOf('wf_many') }))
    await store.add([...letters, ...times(1100, () => aLetter())])
    for (const order of orders)
      assert.equal((await findAll(store, { sourceId: 'wf_many', order, limit: 500 })).length, 1100)
  }),

  check('rejects a filter with an unknown key, value or type', async ({ store }) => {
    await store.add([aLetter()])
    for (const filter of badFilters) {
      await expectRejection('INVALID_INPUT', () => store.find(filter as LetterFilter))
      await expectRejection('INVALID_INPUT', () => store.tally('state', filter))
      await expectRejection('INVALID_INPUT', () => store.remove(filter))
    }
    await expectRejection('INVALID_INPUT', () => store.tally('status' as TallyKey))
    for (const query of badQueries)
      await expectRejection('INVALID_INPUT', () => store.find(query as LetterFilter))
    assert.deepEqual(await store.tally('state'), new Map([['pending', 1]]))
  }),

  check('matches no letter with an empty list', async ({ store }) => {
    await store.add([aLetter()])
    const filters: LetterFilter[] = [
      { ids: [] },
      { queue: [] },
      { state: [] },
      { category: [] },
      { priority: [] },
      { group: [] },
    ]
    for (const filter of filters) {
      const what = JSON.stringify(filter)
      for (const order of orders)
        assert.deepEqual(await store.find({ ...filter, order }), { items: [] }, what)
      assert.deepEqual(await store.tally('state', filter), new Map(), what)
      assert.equal(await store.remove(filter), 0, what)
    }
  }),

  check('rejects an invalid order or limit', async ({ store }) => {
    for (const limit of [-1, 1001, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
      await expectRejection('INVALID_INPUT', () => store.find({ limit }))
    await expectRejection('INVALID_INPUT', () => store.find({ order: 'random' as Order }))
  }),
]

const workflowOf = (taskId: string): DeadLetter['source'] => ({
  kind: 'workflow',
  name: 'nightly',
  taskId,
  targets: [],
})

async function addMixed({ store }: StoreBench): Promise<DeadLetter[]> {
  const letters = mixedLetters()
  await store.add(letters)
  return store.get(ids(letters))
}

function sortLetters(letters: DeadLetter[], order: Order): DeadLetter[] {
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  const sorted = letters.toSorted(
    (a, b) => compare(sortKey(a, order), sortKey(b, order)) || compare(a.id, b.id),
  )
  return order === 'newest' ? sorted.toReversed() : sorted
}

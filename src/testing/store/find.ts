import assert from 'node:assert/strict'
import type { DeadLetter } from '../../letter/letter.ts'
import { matches, orders, sortKey, type LetterFilter, type Order } from '../../letter/query.ts'
import { resolve } from '../../letter/moves.ts'
import type { TallyKey } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, type StoreBench } from './check.ts'
import { mixedFilters, mixedLetters } from './mixed.ts'
import { claim, ids, rejectsWith, sameLetter, walk, worker } from './stage.ts'

const check = checkOn('find')

/** Whole numbers from 0 up, as many as asked. */
const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n))

/** Each would be read as no condition at all by a store that does not look. */
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
  { group: ['f1'] },
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

const badQueries: object[] = [{ limit: 'x' }, { cursor: 5 }, { payload: 1 }, { sort: 'newest' }]

export const findChecks = [
  ...orders.map((order) =>
    check(`agrees with matches() on every filter, order ${order}`, async (bench) => {
      const { store } = bench
      const letters = await keepMixed(bench)
      for (const filter of mixedFilters(letters, store.powers)) {
        const expected = ids(
          inOrder(
            letters.filter((letter) => matches(letter, filter)),
            order,
          ),
        )
        const found = await walk(store, { ...filter, order, limit: 7 })
        assert.deepEqual(ids(found), expected, `${order} ${JSON.stringify(filter)}`)
      }
    }),
  ),

  check('lists the newest first by default', async ({ store }) => {
    const letters = times(5, () => aLetter())
    await store.add(letters)
    assert.deepEqual(ids((await store.find({})).items), ids(letters.toReversed()))
  }),

  check('shows summaries: all but the bytes and the history', async ({ store }) => {
    const letter = aLetter({ tags: ['a'], metadata: { a: 1 }, historyOmitted: 3 })
    await store.add([letter])
    const { history: _, ...summary } = letter
    const { bytes: __, ...payload } = letter.payload
    const { items } = await store.find({})
    assert.deepEqual(items, [{ ...summary, payload }])
  }),

  check('shows whole letters when asked', async ({ store }) => {
    const letter = aLetter()
    await store.add([letter])
    const { items } = await store.find({ payload: true })
    sameLetter(items[0]!, letter)
  }),

  check('gives fifty by default, and none for zero', async ({ store }) => {
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

  check('gives a page of a thousand', async ({ store }) => {
    await store.add(times(1001, () => aLetter()))
    const page = await store.find({ limit: 1000 })
    assert.equal(page.items.length, 1000)
    const rest = await store.find({ limit: 1000, cursor: page.cursor! })
    assert.equal(rest.items.length, 1)
  }),

  ...orders.map((order) =>
    check(`skips and repeats nothing while letters come and go, order ${order}`, async (bench) => {
      const { store } = bench
      const at = '2026-01-01T00:00:00.000Z'
      const made = times(80, (n) =>
        n % 2 ? aLetter({ retryAt: at }) : aLetter({ state: 'resolved', settledAt: at }),
      )
      const late = made.filter((_, n) => n % 5 === 0)
      const gone = made.filter((_, n) => n % 5 === 1)
      const steady = made.filter((_, n) => n % 5 > 1)
      await store.add([...steady, ...gone])
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.find({ order, limit: 7, ...(cursor ? { cursor } : {}) })
        seen.push(...ids(page.items))
        cursor = page.cursor
        await store.add(late.splice(0, 3))
        await store.remove({ ids: ids(gone.splice(0, 3)) })
      } while (cursor !== undefined)
      assert.equal(new Set(seen).size, seen.length, 'none is repeated')
      assert.deepEqual(
        ids(steady).filter((id) => !seen.includes(id)),
        [],
        'none is skipped',
      )
    }),
  ),

  check(
    'lists and gives out what fell due before 1970, or falls due last of all',
    async (bench) => {
      const { store } = bench
      const letters = [
        '9999-12-31T23:59:59.999Z',
        '2026-01-01T00:00:00.000Z',
        '0001-01-01T00:00:00.000Z',
      ].map((retryAt) => aLetter({ retryAt }))
      await store.add(letters)
      const [last, middle, first] = letters
      const found = await walk(store, { order: 'due', limit: 1 })
      assert.deepEqual(ids(found), ids([first!, middle!, last!]))
      assert.deepEqual(ids(await claim(bench)), ids([first!, middle!]))
    },
  ),

  check('lists what came to rest before 1970', async ({ store }) => {
    const letters = [
      '1969-12-31T23:59:59.999Z',
      '2026-01-01T00:00:00.000Z',
      '0001-01-01T00:00:00.000Z',
    ].map((settledAt) => aLetter({ state: 'resolved', settledAt }))
    await store.add(letters)
    const [second, third, first] = letters
    const found = await walk(store, { order: 'settled', limit: 1 })
    assert.deepEqual(ids(found), ids([first!, second!, third!]))
    const settledBefore = '1970-01-01T00:00:00.000Z'
    assert.equal((await walk(store, { order: 'settled', settledBefore, limit: 1 })).length, 2)
  }),

  check('finds the few among thousands', async ({ store }) => {
    const few: [LetterFilter, DeadLetter][] = [
      [{ lane: 'a' }, aLetter({ lane: 'a' })],
      [{ tenant: 'a' }, aLetter({ tenant: 'a' })],
      [{ tag: 'a' }, aLetter({ tags: ['a'] })],
      [{ group: 'f2' }, aLetter({ fingerprint: 'f2' })],
      [{ reason: 'max-hops' }, aLetter({ state: 'parked', reason: 'max-hops' })],
      [{ dependent: true }, aLetter({ dependsOn: [aLetter().id] })],
      [{ sourceId: 'wf_abc123' }, aLetter({ source: workflowOf('wf_abc123') })],
      [{ metadata: { customer: 'x' } }, aLetter({ metadata: { customer: 'x' } })],
    ]
    await store.add([...times(2100, () => aLetter()), ...few.map(([, letter]) => letter)])
    for (const [filter, { id, state }] of few)
      for (const order of orders)
        for (const narrower of [{}, { state }, { state, queue: 'orders' }])
          assert.deepEqual(
            ids(await walk(store, { ...filter, ...narrower, order })),
            [id],
            `${order} ${JSON.stringify({ ...filter, ...narrower })}`,
          )
  }),

  check('goes on after a letter that is gone', async ({ store }) => {
    const letters = times(6, () => aLetter())
    await store.add(letters)
    const page = await store.find({ order: 'oldest', limit: 3 })
    await store.remove({ ids: ids(letters.slice(1, 4)) })
    const next = await store.find({ order: 'oldest', limit: 3, cursor: page.cursor! })
    assert.deepEqual(ids(next.items), ids(letters.slice(4)))
  }),

  check('refuses what is not a cursor, or one of another order', async ({ store }) => {
    await store.add([aLetter(), aLetter()])
    const { cursor } = await store.find({ order: 'oldest', limit: 1 })
    const halves = btoa(String.raw`["newest","\ud800","\ud800"]`)
    const bad = ['', 'nonsense', '%%%', btoa('[]'), btoa('["newest",1,2]'), btoa('{}'), cursor!]
    for (const text of [...bad, halves])
      await rejectsWith('INVALID_INPUT', () => store.find({ order: 'newest', cursor: text }))
  }),

  check('finds all letters of a source id, whatever happened to them', async (bench) => {
    const { store } = bench
    const letters = times(3, () => aLetter({ source: workflowOf('wf_1') }))
    await store.add([...letters, aLetter({ source: workflowOf('wf_2') })])
    const [claimed] = await claim(bench, { limit: 1 })
    await store.apply([resolve(claimed!, worker(bench))])
    assert.deepEqual(ids(await walk(store, { sourceId: 'wf_1', order: 'oldest' })), ids(letters))
    await store.remove({ ids: [letters[1]!.id] })
    assert.deepEqual(
      ids(await walk(store, { sourceId: 'wf_1', order: 'oldest', limit: 1 })),
      ids([letters[0]!, letters[2]!]),
    )
    assert.equal(await store.remove({ sourceId: 'wf_1' }), 2)
    assert.deepEqual((await store.find({ sourceId: 'wf_1' })).items, [])
  }),

  check('finds more letters of one source id than a step reads', async ({ store }) => {
    const letters = times(1100, () => aLetter({ source: workflowOf('wf_many') }))
    await store.add([...letters, ...times(1100, () => aLetter())])
    for (const order of orders)
      assert.equal((await walk(store, { sourceId: 'wf_many', order, limit: 500 })).length, 1100)
  }),

  check('refuses a filter with an unknown key, value or type', async ({ store }) => {
    await store.add([aLetter()])
    for (const filter of badFilters) {
      await rejectsWith('INVALID_INPUT', () => store.find(filter as LetterFilter))
      await rejectsWith('INVALID_INPUT', () => store.tally('state', filter))
      await rejectsWith('INVALID_INPUT', () => store.remove(filter))
    }
    await rejectsWith('INVALID_INPUT', () => store.tally('status' as TallyKey))
    for (const query of badQueries)
      await rejectsWith('INVALID_INPUT', () => store.find(query as LetterFilter))
    assert.deepEqual(await store.tally('state'), new Map([['pending', 1]]))
  }),

  check('finds and removes nothing by an empty list', async ({ store }) => {
    await store.add([aLetter()])
    const filters: LetterFilter[] = [
      { ids: [] },
      { queue: [] },
      { state: [] },
      { category: [] },
      { priority: [] },
    ]
    for (const filter of filters) {
      const what = JSON.stringify(filter)
      for (const order of orders)
        assert.deepEqual(await store.find({ ...filter, order }), { items: [] }, what)
      assert.deepEqual(await store.tally('state', filter), new Map(), what)
      assert.equal(await store.remove(filter), 0, what)
    }
  }),

  check('refuses an order or a limit that there is not', async ({ store }) => {
    for (const limit of [-1, 1001, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
      await rejectsWith('INVALID_INPUT', () => store.find({ limit }))
    await rejectsWith('INVALID_INPUT', () => store.find({ order: 'random' as Order }))
  }),
]

const workflowOf = (taskId: string): DeadLetter['source'] => ({
  kind: 'workflow',
  name: 'nightly',
  taskId,
  targets: [],
})

async function keepMixed({ store }: StoreBench): Promise<DeadLetter[]> {
  const letters = mixedLetters()
  await store.add(letters)
  return store.get(ids(letters))
}

function inOrder(letters: DeadLetter[], order: Order): DeadLetter[] {
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  const sorted = letters.toSorted(
    (a, b) => compare(sortKey(a, order), sortKey(b, order)) || compare(a.id, b.id),
  )
  return order === 'newest' ? sorted.toReversed() : sorted
}

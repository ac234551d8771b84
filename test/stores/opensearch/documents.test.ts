import assert from 'node:assert/strict'
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { categories, type DeadLetter } from '../../../src/letter/letter.ts'
import { encodePayload } from '../../../src/letter/payload.ts'
import { park } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { openSearchStore, type OpenSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { mixedLetters } from '../../../src/testing/store/mixed.ts'
import { matches } from '../../../src/letter/query.ts'
import { backend } from '../../servers/servers.ts'
import { request, Indices } from './opensearch-bench.ts'

const server = backend('opensearch')

describe.skipIf(server.missing)('documents of letters', () => {
  const indices = new Indices(server.url)
  let store: OpenSearchStore

  beforeAll(async () => {
    store = openSearchStore({ url: server.url, prefix: indices.prefix })
    await store.open()
  })
  afterEach(() => indices.clear())
  afterAll(async () => {
    await store.close()
    await indices.remove()
  })

  const searchIds = async (body: object): Promise<string[]> => {
    await indices.refresh()
    const { hits } = await request<{ hits: { hits: { _id: string }[] } }>(
      server.url,
      'POST',
      `/${indices.prefix}-letters/_search`,
      body,
    )
    return hits.hits.map(({ _id: id }) => id).toSorted()
  }

  describe('support the queries of the workflow design', () => {
    it('find all exhausted tasks', async () => {
      const letters = [aLetter({ state: 'exhausted' }), aLetter(), aLetter({ state: 'exhausted' })]
      await store.add(letters)
      const ids = await searchIds({ query: { term: { 'status.keyword': 'exhausted' } } })
      assert.deepEqual(ids, [letters[0]!.id, letters[2]!.id])
    })

    it('find tasks by error category, with the names of the design', async () => {
      const letters = categories.map((category) => aLetter({ category }))
      await store.add(letters)
      const findCategories = async (name: string): Promise<string[]> => {
        const ids = await searchIds({ query: { term: { 'error_category.keyword': name } } })
        return letters.filter(({ id }) => ids.includes(id)).map(({ category }) => category)
      }
      assert.deepEqual(await findCategories('transient'), ['transient', 'rate-limit', 'dependency'])
      assert.deepEqual(await findCategories('network'), ['network', 'timeout'])
      assert.deepEqual(await findCategories('permanent'), ['permanent', 'unknown'])
      for (const name of ['resource', 'permission', 'validation'])
        assert.deepEqual(await findCategories(name), [name])
      for (const letter of letters)
        assert.deepEqual(
          (await store.find({ category: letter.category })).items.map(({ id }) => id),
          [letter.id],
        )
    })

    it('find a task by its own id, and return the task', async () => {
      const source = {
        kind: 'workflow',
        name: 'w',
        taskId: 'WF_abc-123',
        targets: ['repo'],
      } as const
      const payload = encodePayload({ task: { goal: 'build' }, targets: ['repo'] })
      const letters = [aLetter({ source: { ...source, targets: ['repo'] }, payload }), aLetter()]
      await store.add(letters)
      for (const field of ['task_id', 'task_id.keyword'])
        assert.deepEqual(await searchIds({ query: { term: { [field]: 'WF_abc-123' } } }), [
          letters[0]!.id,
        ])
      assert.deepEqual(
        (await store.search('WF_abc-123')).map(({ id }) => id),
        [letters[0]!.id],
      )
      const path = `/${indices.prefix}-letters/_doc/${letters[0]!.id}`
      type Document = { _source: { task: unknown } }
      const { _source: fields } = await request<Document>(server.url, 'GET', path)
      assert.deepEqual(fields.task, { goal: 'build' })
    })

    it('find tasks ready for retry in the next hour', async () => {
      const timestampIn = (ms: number): string => toTimestamp(Date.now() + ms)
      const letters = [600_000, 7_200_000, -60_000].map((ms) =>
        aLetter({ retryAt: timestampIn(ms) }),
      )
      await store.add(letters)
      const ids = await searchIds({ query: { range: { next_retry_at: { lte: 'now+1h' } } } })
      assert.deepEqual(ids, [letters[0]!.id, letters[2]!.id])
    })

    it('have the fields and the types of the design', async () => {
      const path = `/${indices.prefix}-letters/_mapping`
      type Mapping = Record<string, { mappings: { properties: Record<string, { type: string }> } }>
      const mapping = await request<Mapping>(server.url, 'GET', path)
      const { properties } = Object.values(mapping)[0]!.mappings
      const types = Object.entries(properties).map(([name, { type }]) => `${name} ${type}`)
      const expected =
        'task_id keyword,repos keyword,error text,failed_at date,retry_count long,max_retries long,retry_policy keyword,next_retry_at date,status keyword,error_category keyword,last_error text,total_attempts long,updated_at date'
      assert.deepEqual(
        expected.split(',').filter((field) => !types.includes(field)),
        [],
      )
      assert.ok(properties['task'] && properties['metadata'])
    })
  })

  const expectMatches = async (letters: DeadLetter[], text: string): Promise<void> => {
    const expected = letters.filter((letter) => matches(letter, { text })).map(({ id }) => id)
    const { items } = await store.find({ text, order: 'oldest', limit: 1000 })
    assert.deepEqual(
      items.map(({ id }) => id),
      expected,
      text,
    )
  }

  it('are not written for a letter that JSON cannot represent; letters of other calls are written', async () => {
    const unsupported = aLetter({ metadata: { big: 1n as unknown as number } })
    const [good, bad] = await Promise.allSettled([store.add([aLetter()]), store.add([unsupported])])
    assert.equal(good.status, 'fulfilled')
    assert.equal((bad as { reason?: { code?: string } }).reason?.code, 'INVALID_INPUT')
  })

  it.each([{}, { dedupeKey: 'a key' }])(
    'are not written for a letter that the server rejects; letters of other calls are written: %j',
    async (keyed) => {
      const good = [aLetter(), aLetter({ ...keyed, queue: 'others' })]
      const bad = aLetter({ ...keyed, attempts: 1e30 })
      const before = await countCaptures()
      const [first, rejected, second] = await Promise.allSettled(
        [good[0]!, bad, good[1]!].map((letter) => store.add([letter])),
      )
      assert.deepEqual([first!.status, second!.status], ['fulfilled', 'fulfilled'])
      assert.equal((rejected as { reason?: { code?: string } }).reason?.code, 'INVALID_INPUT')
      const ids = [good[0]!, bad, good[1]!].map(({ id }) => id)
      assert.deepEqual(await store.get(ids), good)
      assert.equal(await countCaptures(), before + 2)
    },
  )

  const countCaptures = async (): Promise<number> =>
    (await store.totals())
      .filter(({ action }) => action === 'capture')
      .reduce((sum, { count }) => sum + count, 0)

  it('are found by a part of a word', async () => {
    const letters = mixedLetters()
    await store.add(letters)
    for (const text of [
      'REFUSED',
      '%',
      '_',
      'ärger',
      '\\',
      '🦊',
      "'",
      '',
      '*',
      '?',
      'efu',
      'econn',
    ]) {
      await expectMatches(letters, text)
    }
  })

  it('are found by a long repetitive text only if they contain all of it', async () => {
    const letterWithMessage = (message: string): DeadLetter =>
      aLetter({ failure: { ...aLetter().failure, message } })
    const fox = `${'x'.repeat(199)}\u{1f98a}`
    const letters = [
      'a'.repeat(2000),
      `b${'A'.repeat(1999)}b`,
      '*'.repeat(400),
      `${fox}${'y'.repeat(300)}`,
    ].map(letterWithMessage)
    await store.add(letters)
    const strings = ['a'.repeat(1999), 'A'.repeat(2000), '*'.repeat(400), '*'.repeat(401)]
    for (const text of [...strings, `${fox}${'y'.repeat(200)}`, fox]) {
      await expectMatches(letters, text)
    }
  })

  it('are found by words of the failure, and of the payload only if allowed', async () => {
    const failure = {
      name: 'QuotaError',
      message: 'The disk of customer 17 is full',
      stack: 'QuotaError: …\n    at writeInvoice (invoices.js:3)',
      causes: [],
      at: '2026-01-01T00:00:00.000Z',
    }
    const bytes = new TextEncoder().encode('{"invoice":"zebra-4711"}')
    const payload = { bytes, contentType: 'application/json', size: bytes.length, version: 1 }
    const letter = aLetter({ failure, payload })
    const encrypted = aLetter({ payload: { ...payload, keyId: 'k1' } })
    await store.add([letter, encrypted, aLetter({ queue: 'mail' })])
    const search = async (text: string, allowed = false): Promise<string[]> =>
      (await store.search(text, { payload: allowed })).map(({ id }) => id)
    assert.deepEqual(await search('disk FULL'), [letter.id])
    assert.deepEqual(await search('writeInvoice'), [letter.id])
    assert.deepEqual(await search('disk empty'), [])
    assert.deepEqual(await search('zebra'), [])
    assert.deepEqual(await search('zebra', true), [letter.id])
    assert.deepEqual(await store.search('disk', { among: { queue: 'mail' } }), [])
    assert.deepEqual(await search('" OR * ) AND ('), [])
  })

  describe('after a manual change', () => {
    const edit = (id: string, doc: object): Promise<unknown> =>
      request(server.url, 'POST', `/${indices.prefix}-letters/_update/${id}?refresh=true`, { doc })

    it.each([
      ['of the letter', { head: '{"letter":{"id":"x","state":"parked"},"waitsFor":[]}' }],
      ['of the letter to invalid JSON', { head: '{' }],
      ['of the payload', { payload: 'AAAA' }],
      ['of the history', { history: '[]' }],
      ['of a search field', { status: 'exhausted' }],
      ['of the checksums', { sums: null }],
    ])('%s, the letter is returned as corrupt, and others are unchanged', async (_, doc) => {
      const [damaged, intact] = [aLetter(), aLetter()]
      await store.add([damaged, intact])
      await edit(damaged.id, doc)
      const [corrupt, other] = await store.get([damaged.id, intact.id])
      assert.equal(typeof corrupt!.corrupt, 'string')
      assert.equal(corrupt!.id, damaged.id)
      assert.deepEqual(other, intact)
      const { items } = await store.find({ payload: true })
      assert.equal(items.length, 2)
      assert.equal(items.filter(({ corrupt }) => corrupt === undefined).length, 1)
      assert.equal((await store.find({})).items.length, 2)
    })

    it('the letter can be parked, stays corrupt, and can be removed', async () => {
      const letter = aLetter()
      await store.add([letter])
      await edit(letter.id, { payload: 'AAAA' })
      const [corrupt] = await store.get([letter.id])
      const by = { at: letter.updatedAt, actor: 'ada', guard: 'version' } as const
      const parked = park(corrupt!, by, { reason: 'malformed' })
      assert.deepEqual(await store.apply([parked]), ['written'])
      const [after] = await store.get([letter.id])
      assert.deepEqual([after!.state, after!.corrupt], ['parked', corrupt!.corrupt])
      assert.equal(await store.remove({ ids: [letter.id] }), 1)
    })

    it('of the fields for claims, a letter that is not due is not claimed', async () => {
      const letter = aLetter({ state: 'resolved' })
      await store.add([letter])
      await edit(letter.id, { status: 'pending', due_ms: 0, claim_score: 0 })
      const { letters } = await store.claim({ worker: 'w', limit: 5, leaseMs: 1000 })
      assert.deepEqual(letters, [])
    })
  })
})

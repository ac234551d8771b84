import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeadLetterQueue, exponential } from '../../src/index.ts'
import { createProxy } from '../faults/proxy.ts'
import { opensearchPlace, type Place } from '../servers/places.ts'
import { backend, freshName } from '../servers/servers.ts'
import { refused } from '../a-queue.ts'
import { clause, row } from './rows.ts'

const server = backend('opensearch')

describe.skipIf(server.missing)(row('W9'), () => {
  let place: Place
  let url: string
  let folder: string
  beforeAll(() => {
    place = opensearchPlace(server.url)
    url = `opensearch://${new URL(server.url).host}/${place.name}`
    folder = mkdtempSync(join(tmpdir(), 'redrive-w9-'))
  })
  afterAll(async () => {
    await place.clear()
    rmSync(folder, { recursive: true, force: true })
  })

  const ask = async (path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(new URL(path, server.url), {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return answer.json()
  }
  interface Found {
    id: string
    fields: Record<string, unknown>
  }
  const search = async (query: object, index = `${place.name}-letters`): Promise<Found[]> => {
    await ask(`${index}/_refresh`, {})
    const { hits } = (await ask(`${index}/_search`, { query })) as {
      hits: { hits: { _id: string; _source: Record<string, unknown> }[] }
    }
    return hits.hits.map(({ _id: id, _source: fields }) => ({ id, fields }))
  }
  const idsOf = async (query: object, index?: string): Promise<string[]> =>
    (await search(query, index)).map(({ id }) => id).toSorted()
  const open = (at = url): Promise<DeadLetterQueue> =>
    DeadLetterQueue.open(at, { onStoreDown: 'fail' })
  const failing = (): Promise<never> => Promise.reject(refused())

  it(clause('W9', "OpenSearch store: the seed's index fields with explicit mapping"), async () => {
    await using dlq = await open()
    const { id } = await dlq.enqueue({ type: 'fields' }, refused())
    const index = `${place.name}-letters`
    const mappings = (await ask(`${index}/_mapping`)) as Record<
      string,
      { mappings: { dynamic?: unknown; properties: Record<string, { type: string }> } }
    >
    const [{ mappings: mapping } = { mappings: { properties: {} } }] = Object.values(mappings)
    const typeOf = (field: string): string | undefined => mapping.properties[field]?.type
    expect(String(mapping.dynamic)).not.toBe('true')
    const words = ['task_id', 'repos', 'retry_policy', 'status', 'error_category']
    expect(words.map(typeOf)).toEqual(words.map(() => 'keyword'))
    expect(['error', 'last_error'].map(typeOf)).toEqual(['text', 'text'])
    const dates = ['failed_at', 'next_retry_at', 'updated_at']
    expect(dates.map(typeOf)).toEqual(dates.map(() => 'date'))
    const counts = ['retry_count', 'max_retries', 'total_attempts']
    expect(counts.map(typeOf)).toEqual(counts.map(() => expect.stringMatching(/integer|long/)))
    const [document] = await search({ ids: { values: [id] } })
    expect(document?.fields).toMatchObject({
      error: expect.stringContaining('ECONNREFUSED'),
      retry_count: 0,
      max_retries: 3,
      retry_policy: 'exponential',
      status: 'pending',
      total_attempts: 1,
    })
  })

  it(clause('W9', 'its three example queries work'), async () => {
    await using dlq = await open()
    const policy = exponential({ baseMs: 60_000, factor: 2, maxMs: 600_000 })
    const { id } = await dlq.enqueue({ type: 'queries' }, refused(), { policy })
    const spent = { policy, maxRetries: 1 }
    const { id: done } = await dlq.enqueue({ type: 'queries' }, refused(), spent)
    await dlq.fail(done, refused())
    const here = (query: object): object => ({
      bool: { filter: [query, { term: { queue: 'queries' } }] },
    })
    expect(await idsOf(here({ term: { 'status.keyword': 'exhausted' } }))).toEqual([done])
    expect(await idsOf(here({ term: { 'error_category.keyword': 'network' } }))).toEqual(
      [id, done].toSorted(),
    )
    expect(await idsOf(here({ range: { next_retry_at: { lte: 'now+1h' } } }))).toEqual([id])
  })

  it(clause('W9', 'reload after restart'), async () => {
    const first = await open()
    const { id } = await first.enqueue({ type: 'restart', payload: 1 }, refused())
    const { id: done } = await first.enqueue({ type: 'restart', payload: 2 }, refused())
    await first.resolve(done)
    await first.close()
    await using second = await open()
    expect((await second.get(id))?.state).toBe('pending')
    expect((await second.get(done))?.state).toBe('resolved')
    const resolved = new Promise((resolve) =>
      second.on('resolved', ({ letter }) => resolve(letter)),
    )
    second.handle('restart', () => {})
    second.start()
    await second.retry(id)
    expect(await resolved).toMatchObject({ id, retries: 1 })
  })

  describe(clause('W9', 'fallback by spool, also when the store is away at start'), () => {
    const waitUntilDrained = async (id: string, spoolPath: string): Promise<void> => {
      await using back = await DeadLetterQueue.open(url, { spoolPath })
      await expect.poll(() => back.get(id)).toMatchObject({ id })
    }

    it('captures during an outage wait in the spool', async () => {
      const proxy = await createProxy(server.url)
      const spoolPath = join(folder, 'spool')
      const dlq = await DeadLetterQueue.open(proxy.through(url), { spoolPath })
      await proxy.set('reset')
      const { id } = await dlq.enqueue({ type: 'c' }, refused())
      expect((await dlq.health()).spool?.letters).toBe(1)
      await dlq.close()
      proxy.close()
      await waitUntilDrained(id, spoolPath)
    })

    it('a process that starts during an outage captures to the spool', async () => {
      const proxy = await createProxy(server.url)
      await proxy.set('reset')
      const spoolPath = join(folder, 'spool-at-start')
      const dlq = await DeadLetterQueue.open(proxy.through(url), { spoolPath })
      expect((await dlq.health()).ok).toBe(false)
      const { id } = await dlq.enqueue({ type: 'c' }, refused())
      expect((await dlq.health()).spool?.letters).toBe(1)
      await dlq.close()
      proxy.close()
      await waitUntilDrained(id, spoolPath)
    })
  })

  it(clause('W9', "task_id and task are the workflow's"), async () => {
    await using dlq = await open()
    const task = { type: 'code_sweep', depth: 2 }
    await dlq.workflow().run({ id: 'wf_abc123', task, targets: ['repo-a'] }, failing)
    const found = await search({ term: { task_id: 'wf_abc123' } })
    expect(found.map(({ fields }) => fields)).toMatchObject([
      { task_id: 'wf_abc123', task, repos: ['repo-a'] },
    ])
  })

  it(clause('W9', "the seed's index name works"), async () => {
    // All stores of the cluster share the alias, so the letter is found by its id.
    await using dlq = await open()
    const id = freshName()
    await dlq.workflow().run({ id, task: { type: 'code_sweep' } }, failing)
    const query = { bool: { filter: [{ term: { task_id: id } }, { term: { status: 'pending' } }] } }
    expect(await search(query, 'mahavishnu_dlq')).toHaveLength(1)
  })

  it(clause('W9', 'its category words match'), async () => {
    await using dlq = await open()
    const errors: [string, Error][] = [
      ['transient', new Error('429 Too Many Requests')],
      ['transient', new Error('Service temporarily unavailable')],
      ['network', new Error('Read timed out')],
      ['network', new Error('Connection reset by peer')],
      ['resource', new Error('disk quota exceeded')],
      ['permission', new Error('Permission denied for resource')],
      ['validation', new Error('invalid workspace name')],
    ]
    const expected = new Map<string, string[]>()
    for (const [n, [word, error]] of errors.entries()) {
      const { id } = await dlq.enqueue({ type: 'words', payload: n }, error)
      expected.set(word, [...(expected.get(word) ?? []), id])
    }
    for (const [word, ids] of expected) {
      const terms = [{ term: { 'error_category.keyword': word } }, { term: { queue: 'words' } }]
      expect(await idsOf({ bool: { filter: terms } }), word).toEqual(ids.toSorted())
    }
  })
})

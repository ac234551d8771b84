import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../src/index.ts'
import { aFolder } from '../folders.ts'
import { createProxy } from '../faults/proxy.ts'
import { opensearchPlace, type Place } from '../servers/places.ts'
import { backend, freshName } from '../servers/servers.ts'
import { refused } from '../a-queue.ts'
import { clause, row } from './rows.ts'

const server = backend('opensearch')

describe.skipIf(server.missing)(row('W9'), () => {
  let place: Place
  let url: string
  const folder = aFolder('opensearch')
  beforeAll(() => {
    place = opensearchPlace(server.url)
    url = `opensearch://${new URL(server.url).host}/${place.name}`
  })
  afterAll(async () => {
    await place.clear()
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

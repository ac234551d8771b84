import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeadLetterQueue, exponential } from '../../src/index.ts'
import { createProxy } from '../faults/proxy.ts'
import { opensearchPlace, type Place } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { refused } from '../a-queue.ts'
import { quote } from './rows.ts'

const server = backend('opensearch')

describe.skipIf(server.missing)(quote('W9'), () => {
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

  const hits = async (query: object): Promise<string[]> => {
    await fetch(new URL(`${place.name}-letters/_refresh`, server.url), { method: 'POST' })
    const answer = await fetch(new URL(`${place.name}-letters/_search`, server.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    })
    const { hits: found } = (await answer.json()) as { hits: { hits: { _id: string }[] } }
    return found.hits.map(({ _id: id }) => id)
  }

  it('the three example queries find letters, also after a restart', async () => {
    const first = await DeadLetterQueue.open(url, { onStoreDown: 'fail' })
    const policy = exponential({ baseMs: 60_000, factor: 2, maxMs: 600_000 })
    const { id } = await first.enqueue({ type: 'a' }, refused(), { policy })
    const spent = { policy, maxRetries: 1 }
    const { id: done } = await first.enqueue({ type: 'b' }, refused(), spent)
    await first.fail(done, refused())
    await first.close()
    const second = await DeadLetterQueue.open(url, { onStoreDown: 'fail' })
    expect(await hits({ term: { 'status.keyword': 'exhausted' } })).toEqual([done])
    expect((await hits({ term: { 'error_category.keyword': 'network' } })).toSorted()).toEqual(
      [id, done].toSorted(),
    )
    expect(await hits({ range: { next_retry_at: { lte: 'now+1h' } } })).toContain(id)
    expect((await second.get(id))?.state).toBe('pending')
    await second.close()
  })

  /** The queries of the document, to the letter. */
  const queries = {
    exhausted: { query: { term: { 'status.keyword': 'exhausted' } } },
    transient: { query: { term: { 'error_category.keyword': 'transient' } } },
    ready: { query: { range: { next_retry_at: { lte: 'now+1h' } } } },
  }

  it('the three example queries work on the index name of the document, in its words', async () => {
    const dlq = await DeadLetterQueue.open(url, { onStoreDown: 'fail' })
    const busy = Object.assign(new Error('slow down'), { status: 429 })
    const policy = exponential({ baseMs: 60_000, factor: 2, maxMs: 600_000 })
    const nightly = dlq.workflow({ name: 'nightly' })
    await nightly
      .run({ id: 'wf_abc123', task: { goal: 'build' } }, () => Promise.reject(busy))
      .catch(() => {})
    const [workflow] = (await dlq.find({ sourceId: 'wf_abc123' })).items
    const spent = await dlq.enqueue({ type: 'b' }, refused(), { policy, maxRetries: 1 })
    await dlq.fail(spent.id, refused())
    const mine = [workflow!.id, spent.id]
    const ask = async (body: object): Promise<string[]> => {
      await fetch(new URL(`${place.name}-letters/_refresh`, server.url), { method: 'POST' })
      const answer = await fetch(new URL('mahavishnu_dlq/_search?size=1000', server.url), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      // The alias covers every store of the cluster that has not renamed it, so that others may be found too.
      const { hits: found } = (await answer.json()) as { hits: { hits: { _id: string }[] } }
      return found.hits.map(({ _id: id }) => id).filter((id) => mine.includes(id))
    }
    expect(workflow!.category).toBe('rate-limit')
    expect(await ask(queries.exhausted)).toEqual([spent.id])
    expect(await ask(queries.transient)).toEqual([workflow!.id])
    expect(await ask(queries.ready)).toEqual([workflow!.id])
    expect(await ask({ query: { term: { task_id: 'wf_abc123' } } })).toEqual([workflow!.id])
    await dlq.close()
  })

  it('what is captured while it is away waits in the spool', async () => {
    const proxy = await createProxy(server.url)
    const spoolPath = join(folder, 'spool')
    const dlq = await DeadLetterQueue.open(proxy.through(url), { spoolPath })
    await proxy.set('reset')
    const { id } = await dlq.enqueue({ type: 'c' }, refused())
    expect((await dlq.health()).spool?.letters).toBe(1)
    await dlq.close()
    proxy.close()
    const back = await DeadLetterQueue.open(url, { spoolPath })
    await expect.poll(() => back.get(id)).toMatchObject({ id })
    await back.close()
  })
})

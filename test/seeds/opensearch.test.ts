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

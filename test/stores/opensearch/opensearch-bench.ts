import { openSearchStore, type OpenSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import { freshName } from '../../servers/servers.ts'
import type { ClosableBench } from '../../contract/run-store-contract.ts'
import { openBench, pausing } from '../bench.ts'

/** Sends a request directly to the server, without the store. */
export async function request<T = unknown>(
  url: string,
  method: string,
  path: string,
  body?: object | string,
): Promise<T> {
  const text = typeof body === 'object' ? JSON.stringify(body) : body
  const response = await fetch(`${url}${path}`, {
    method,
    ...(text === undefined ? {} : { body: text, headers: { 'content-type': 'application/json' } }),
  })
  return (await response.json()) as T
}

/**
 * Indices of one test file: created once, since that takes long, emptied for every test, and
 * deleted at the end.
 */
export class Indices {
  readonly url: string
  readonly prefix: string

  constructor(url: string) {
    this.url = url
    this.prefix = freshName()
  }

  /** Makes all writes visible to searches. */
  async refresh(): Promise<void> {
    await request(this.url, 'POST', `/${this.prefix}-*/_refresh`)
  }

  async count(index: string): Promise<number> {
    const path = `/${this.prefix}-${index}/_count`
    return (await request<{ count: number }>(this.url, 'GET', path)).count
  }

  /** Takes much less time than a delete by query. */
  async clear(): Promise<void> {
    const size = 10_000
    for (;;) {
      // The search must find all documents.
      await this.refresh()
      const { hits } = await request<{ hits: { hits: { _index: string; _id: string }[] } }>(
        this.url,
        'POST',
        `/${this.prefix}-*/_search`,
        { size, _source: false },
      )
      if (hits.hits.length === 0) return
      const lines = hits.hits.map(({ _index, _id }) => JSON.stringify({ delete: { _index, _id } }))
      await request(this.url, 'POST', '/_bulk?refresh=true', `${lines.join('\n')}\n`)
      if (hits.hits.length < size) return
    }
  }

  async remove(): Promise<void> {
    await request(this.url, 'DELETE', `/${this.prefix}-*`)
  }

  async open(clock: FakeClock = fakeClock()): Promise<ClosableBench & { store: OpenSearchStore }> {
    const { url, prefix } = this
    const make = () => openSearchStore({ url, prefix, clock: pausing(clock) })
    const bench = await openBench(make, clock)
    await this.clear()
    return bench
  }
}

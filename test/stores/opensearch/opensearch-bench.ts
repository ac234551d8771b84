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
  body?: object,
): Promise<T> {
  const response = await fetch(`${url}${path}`, {
    method,
    ...(body
      ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      : {}),
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

  async clear(): Promise<void> {
    // The deletion finds documents by a search, so all writes must be visible to searches.
    await this.refresh()
    const query = { match_all: {} }
    const path = `/${this.prefix}-*/_delete_by_query?refresh=true&conflicts=proceed`
    await request(this.url, 'POST', path, { query })
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

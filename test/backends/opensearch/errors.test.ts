import { expect, it } from 'vitest'
import { openSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { faultOf } from '../../../src/backends/opensearch/errors.ts'

it('says what went wrong on the shards, and not only that it did', () => {
  const cause = { type: 'query_shard_exception', reason: 'failed to create query' }
  const fault = {
    type: 'search_phase_execution_exception',
    reason: 'all shards failed',
    root_cause: [cause],
  }
  expect(faultOf(400, fault, 'node').message).toContain('failed to create query')
  const deeper = { ...cause, caused_by: { type: 'illegal', reason: 'no scripts here' } }
  expect(faultOf(400, { ...fault, root_cause: [deeper] }, 'node').message).toContain('no scripts')
  expect(faultOf(400, { ...fault, root_cause: [] }, 'node').message).toContain('all shards failed')
})

it('says what to do about a server that is not there', async () => {
  const store = openSearchStore({ url: 'opensearch://127.0.0.1:1' })
  await expect(store.open()).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining(
      'cannot be reached: start it, or correct the URL (connect ECONNREFUSED',
    ) as string,
  })
  await store.close()
})

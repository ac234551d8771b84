import { expect, it } from 'vitest'
import { openSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { faultOf } from '../../../src/backends/opensearch/errors.ts'

it('includes the errors of the shards', () => {
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

it('names the fix for an unreachable server', async () => {
  const store = openSearchStore({ url: 'opensearch://127.0.0.1:1' })
  await expect(store.open()).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining(
      'cannot be reached: start it, or correct the URL (connect ECONNREFUSED',
    ) as string,
  })
  await store.close()
})

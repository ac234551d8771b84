import { expect, it } from 'vitest'
import { removeOldActions } from '../../src/bulk/cleanup.ts'
import { BulkRecords } from '../../src/bulk/records.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { aQueue } from '../a-queue.ts'
import { planAndFinish } from './steps.ts'

const dayMs = 86_400_000

it('actions, plans and letters without an action are removed when they are old', async () => {
  const bench = await aQueue()
  const { dlq, store, clock } = bench
  await store.add(Array.from({ length: 3 }, () => aLetter({ state: 'parked' })))
  const done = await planAndFinish(bench, 'tag', {}, { addTags: ['a'] })
  await dlq.stop()
  const plan = await dlq.plan('tag', {}, { addTags: ['b'] })
  const lost = clock.id()
  await new BulkRecords(store).createChunk(lost, 0, [{ id: lost, version: 1 }])
  const kept = async (): Promise<string[]> => {
    const chunks = await store.records.list('bulk-letters')
    return [...new Set(chunks.map(({ id }) => id.slice(0, 36)))].sort()
  }
  await removeOldActions()({ store, clock })
  expect(await kept()).toEqual([done.id, plan.id, lost].sort())
  clock.set(clock.now() + 2 * dayMs)
  await removeOldActions()({ store, clock })
  expect(await kept()).toEqual([done.id])
  clock.set(clock.now() + 30 * dayMs)
  await removeOldActions()({ store, clock })
  expect(await kept()).toEqual([])
  expect(await dlq.bulkActions()).toEqual([])
  await dlq.close()
})

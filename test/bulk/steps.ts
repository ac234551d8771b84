import type { BulkAction, BulkResult, FilterActionName } from '../../src/letter/bulk-action.ts'
import type { PlanOptions } from '../../src/bulk/plan-options.ts'
import type { LetterFilter } from '../../src/letter/query.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import type { QueueBench } from '../a-queue.ts'

export const by = { by: 'ada', reason: 'the bug is fixed' }

/** A queue whose time the test controls. */
type Driven = Pick<QueueBench, 'dlq' | 'clock'>

/** Runs a planned action until it has nothing left to do. */
export async function finish(bench: Driven, { id }: BulkAction): Promise<BulkAction> {
  const { dlq, clock } = bench
  dlq.start()
  if ((await dlq.bulkAction(id)).state === 'planned') await dlq.run(id)
  for (let turn = 0; turn < 2000; turn += 1) {
    const action = await dlq.bulkAction(id)
    if (action.state !== 'running') return action
    await clock.advance(100)
  }
  throw new Error(`still running: ${JSON.stringify(await dlq.bulkAction(id))}`)
}

export async function planAndFinish(
  bench: Driven,
  action: FilterActionName,
  filter: LetterFilter,
  options: PlanOptions = {},
): Promise<BulkAction> {
  return finish(bench, await bench.dlq.plan(action, filter, { ...by, ...options }))
}

export async function resultsOf(
  { dlq }: Pick<QueueBench, 'dlq'>,
  { id }: BulkAction,
): Promise<BulkResult[]> {
  return (await dlq.results(id, { limit: 1000 })).items
}

/** A store that fails once, after the letters were changed and before that was recorded. */
export function crashingStore(clock: QueueBench['clock']): Store & { crashes: number } {
  const store = memoryStore({ clock })
  const put = store.records.put.bind(store.records)
  const crashing = Object.assign(store, { crashes: 0 })
  store.records.put = async (kind, id, value, version) => {
    const isResult = kind === 'bulk-letters' && JSON.stringify(value).includes('outcome')
    if (isResult && crashing.crashes === 0) {
      crashing.crashes += 1
      throw new Error('crashed')
    }
    return put(kind, id, value, version)
  }
  return crashing
}

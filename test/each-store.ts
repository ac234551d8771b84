import type { QueueOptions } from '../src/options/options.ts'
import { DeadLetterQueue } from '../src/queue/queue.ts'
import type { Store } from '../src/store.ts'
import { memoryStore } from '../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../src/testing/fake-clock.ts'
import { afterFile } from './after-file.ts'
import { backend } from './servers/servers.ts'
import { Indices } from './stores/opensearch/opensearch-bench.ts'
import * as postgres from './stores/postgres/postgres-bench.ts'
import { openRedisBench, single as redis } from './stores/redis/redis-bench.ts'
import { openSqliteBench } from './stores/sqlite/sqlite-bench.ts'

type Open = (clock: FakeClock) => Promise<{
  store: Store
  /** Opens the same store again, as another process does. Absent: only one process can use it. */
  another?: () => Promise<Store>
  close: () => Promise<void>
}>

/** The stores that are available here, by name. */
export const eachStore: [name: string, open: Open][] = [
  [
    'memory',
    async (clock) => {
      const store = memoryStore({ clock })
      return { store, close: () => store.close() }
    },
  ],
  ['SQLite', openSqliteBench],
  ...(postgres.missing ? [] : [['Postgres', postgres.openPostgresBench] as [string, Open]]),
  ...(redis.missing ? [] : [['Redis', openRedisBench] as [string, Open]]),
]

const search = backend('opensearch')
let indices: Indices | undefined

function openIndices(clock: FakeClock): ReturnType<Open> {
  afterFile(removeIndices)
  indices ??= new Indices(search.url)
  return indices.open(clock)
}

async function removeIndices(): Promise<void> {
  await indices?.remove()
  indices = undefined
}

/** The stores of `eachStore` and OpenSearch, where creating indices takes long. */
export const eachStoreAndOpenSearch: typeof eachStore = [
  ...eachStore,
  ...(search.missing ? [] : [['OpenSearch', openIndices] satisfies (typeof eachStore)[number]]),
]

/** Calls `use` with a queue on a new store, and closes both. */
export async function withQueue(
  open: Open,
  options: QueueOptions,
  use: (dlq: DeadLetterQueue, clock: FakeClock) => Promise<void>,
): Promise<void> {
  const clock = fakeClock()
  const { store, close } = await open(clock)
  try {
    const dlq = await DeadLetterQueue.open(store, { clock, ...options })
    await use(dlq, clock)
    await dlq.close()
  } finally {
    await close()
  }
}

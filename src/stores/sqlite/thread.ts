import { workerBeside } from '../../backends/sqlite/channel.ts'
import { SqliteThread } from '../../backends/sqlite/thread.ts'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { DatabaseOptions } from './database.ts'
import type { Methods } from './protocol.ts'

export type StoreThread = SqliteThread<Methods>

const program = workerBeside(import.meta.url, 'redrive-sqlite')

/** The thread of a store. `wake` is called when a letter may have become claimable. */
export function openStoreThread(
  options: DatabaseOptions,
  clock: Clock,
  wake: () => void,
): StoreThread {
  const message = `sqlite ${options.path}: the thread of the store died; calls in flight may or may not be stored`
  return new SqliteThread<Methods>({
    program,
    file: options,
    now: () => clock.now(),
    onEvent: wake,
    toLossError: (cause) => new RedriveError('STORE_UNAVAILABLE', message, { cause }),
  })
}

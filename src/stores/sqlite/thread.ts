import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { workerBeside } from '../../backends/sqlite/channel.ts'
import { openThread, type Thread as AnyThread } from '../../backends/sqlite/thread.ts'
import type { DatabaseOptions } from './database.ts'
import type { Report, Verbs } from './protocol.ts'

export type Thread = AnyThread<Verbs>

const program = workerBeside(import.meta.url, 'redrive-sqlite')

/** The thread that keeps the file of a store. `wake` is called when a letter may have become free to be claimed. */
export function sqliteThread(options: DatabaseOptions, clock: Clock, wake: () => void): Thread {
  const message = `sqlite ${options.path}: the thread that keeps the file died; what was on its way may or may not be kept`
  return openThread<Verbs, Report>({
    program,
    file: options,
    now: () => clock.now(),
    // Most of it goes into making the letter.
    callerMs: 0.03,
    hear: ({ woke }) => woke && wake(),
    lost: (cause) => new RedriveError('STORE_UNAVAILABLE', message, { cause }),
  })
}

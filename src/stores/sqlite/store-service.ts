import type { Service } from '../../backends/sqlite/dispatcher.ts'
import { isFull, toOpenError, toRedriveError, type Tenant } from '../../backends/sqlite/errors.ts'
import { openContext, type StoreContext } from './context.ts'
import type { DatabaseOptions } from './database.ts'
import { methods } from './methods.ts'

const tenant: Tenant = {
  noun: 'store',
  unavailable: 'STORE_UNAVAILABLE',
  whenBusy:
    'another process held the write lock for longer than busyTimeoutMs: try again, or raise it',
}

/**
 * A store in a SQLite file, as the dispatcher of its thread runs it. Its only event: a letter may
 * have become claimable.
 */
export function storeService(options: DatabaseOptions): Service<StoreContext> {
  return {
    methods,
    open: () => openContext(options),
    hasExplicitFlush: false,
    beforeWrite({ db, disk }) {
      disk.check()
      // On a nearly full disk, empty the WAL before each write so that it is reused and does not
      // grow.
      if (disk.isLow()) db.checkpoint()
    },
    beforeCommit: ({ counters }) => counters.flush(),
    forget({ counters, queues, disk }, error) {
      counters.forget()
      queues.forget()
      if (isFull(error)) disk.problems()
    },
    takeEvent(context) {
      const event = context.woke ? 'claimable' : undefined
      context.woke = false
      return event
    },
    toError: (error, method) =>
      (method === 'open' ? toOpenError : toRedriveError)(error, options.path, tenant),
  }
}

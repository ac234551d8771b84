import type { Service } from '../../backends/sqlite/dispatcher.ts'
import { toRedriveError, type Tenant } from '../../backends/sqlite/errors.ts'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { openContext, type MailContext } from './context.ts'
import { methods } from './methods.ts'
import type { ExpiredEvent } from './protocol.ts'

/** The place of the file is checked before every durable write, and else this often. */
const betweenChecksMs = 5

const tenant: Tenant = {
  noun: 'mailbox',
  unavailable: 'MAILBOX_UNAVAILABLE',
  whenBusy: 'another process held the write lock for too long: try again',
}

/**
 * The mailboxes of a SQLite file, as the dispatcher of its thread runs them. Events are of type
 * ExpiredEvent.
 */
export function mailService(path: string): Service<MailContext> {
  let checkAtMs = 0
  return {
    methods,
    open: () => openContext(path),
    hasExplicitFlush: true,
    beforeWrite(context, isDurable) {
      context.n = undefined
      if (!isDurable && systemClock.mono() < checkAtMs) return
      checkAtMs = 0
      const misplaced = context.db.place.problem()
      if (misplaced !== undefined) throw new RedriveError(tenant.unavailable, misplaced)
      checkAtMs = systemClock.mono() + betweenChecksMs
    },
    beforeCommit({ db, n }) {
      if (n !== undefined) db.run('UPDATE counter SET n = ? WHERE n < ?', n, n)
    },
    forget({ expired, swept, filled }) {
      expired.clear()
      swept.clear()
      filled.clear()
    },
    takeEvent({ expired }) {
      if (expired.size === 0) return undefined
      const event: ExpiredEvent = [...expired]
      expired.clear()
      return event
    },
    toError: (error) => toRedriveError(error, path, tenant),
  }
}

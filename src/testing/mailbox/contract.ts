import type { MailboxCheck } from './check.ts'
import { browseChecks, countChecks } from './counts.ts'
import { lifecycleChecks } from './lifecycle.ts'
import { receiveChecks, waitChecks } from './receive.ts'
import { replyChecks } from './replies.ts'
import { retentionChecks } from './retention.ts'
import { sendChecks } from './send.ts'
import { settleChecks } from './settle.ts'
import { nameChecks, concurrencyChecks } from './concurrency.ts'

/**
 * The mailbox contract as a list of checks for any test runner: create a bench for each check, skip
 * it if `needs` returns a reason, and await `run`.
 */
export const mailboxContract: readonly MailboxCheck[] = [
  ...lifecycleChecks,
  ...sendChecks,
  ...receiveChecks,
  ...waitChecks,
  ...settleChecks,
  ...countChecks,
  ...browseChecks,
  ...replyChecks,
  ...retentionChecks,
  ...concurrencyChecks,
  ...nameChecks,
]

import type { MailboxCheck } from './check.ts'
import { browseChecks, countChecks } from './counts.ts'
import { lifecycleChecks } from './lifecycle.ts'
import { receiveChecks, waitChecks } from './receive.ts'
import { replyChecks } from './replies.ts'
import { retentionChecks } from './retention.ts'
import { sendChecks } from './send.ts'
import { settleChecks } from './settle.ts'
import { nameChecks, togetherChecks } from './together.ts'

/**
 * What every mailbox promises, as a list of checks that any test runner can walk: give each a fresh bench, skip it
 * where `needs` answers with a reason, and await `run`.
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
  ...togetherChecks,
  ...nameChecks,
]

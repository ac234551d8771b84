import { openMailbox } from '../../../src/connect/mailbox.ts'
import type { Mailbox } from '../../../src/mailbox.ts'
import { pause } from '../child.ts'
import { codeOf } from '../record-store.ts'
import type { BugName } from './bugs.ts'
import { openLedger, type Ledger } from './ledger.ts'

/** Settings of a child process, passed as JSON in its only argument. */
export interface ChildSettings {
  dir: string
  name: string
  seed: number
  /** URL of the broker. */
  url: string
  /** URL of the store for dead messages as letters. */
  letters: string
  bug?: BugName
}

/** Names of the mailboxes of a run. */
export const names = { requests: 'requests', dead: 'requests-dlq', replies: 'replies' } as const

export const visibilitySeconds = 1.5
export const backoffMs = 150

/** Makes this process a child of the run: it exits with its parent. */
export function beChild(): { settings: ChildSettings; ledger: Ledger } {
  const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
  process.once('disconnect', () => process.exit(3))
  return { settings, ledger: openLedger(settings.dir, settings.name) }
}

const reopenMs = 200

/** Retries while the broker is unreachable, as a process supervisor would. */
export async function openWithRetry(url: string, name: string, ledger: Ledger): Promise<Mailbox> {
  for (;;)
    try {
      return await openMailbox(url, { name })
    } catch (error) {
      const code = codeOf(error)
      ledger.write({ e: 'open.fail', code })
      if (code !== 'MAILBOX_UNAVAILABLE') throw error
      await pause(reopenMs)
    }
}

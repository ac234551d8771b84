import { openMailbox } from '../../../src/connect/mailbox.ts'
import type { Mailbox } from '../../../src/mailbox.ts'
import { pause } from '../child.ts'
import { codeOf } from '../witness.ts'
import type { BugName } from './bugs.ts'
import { openLedger, type Ledger } from './ledger.ts'

/** What a child is told when it is spawned, as JSON in its only argument. */
export interface ChildSettings {
  dir: string
  name: string
  seed: number
  /** Of the broker. */
  url: string
  /** Where dead messages are kept as letters. */
  letters: string
  bug?: BugName
}

/** The mailboxes of a run, by their names at the broker. */
export const names = { requests: 'requests', dead: 'requests-dlq', replies: 'replies' } as const

export const visibilitySeconds = 1.5
export const backoffMs = 150

/** Makes this process a child of the run: it ends with its parent. */
export function beChild(): { settings: ChildSettings; ledger: Ledger } {
  const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
  process.once('disconnect', () => process.exit(3))
  return { settings, ledger: openLedger(settings.dir, settings.name) }
}

const reopenMs = 200

/** Begins again while the broker cannot be reached, as whoever looks after a process would let it. */
export async function opened(url: string, name: string, ledger: Ledger): Promise<Mailbox> {
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

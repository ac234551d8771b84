import { describe, it } from 'vitest'
import type { MailboxBench } from '../../src/testing/index.ts'
import { mailboxContract } from '../../src/testing/index.ts'

/** A bench with cleanup. */
export interface ClosableMailboxBench extends MailboxBench {
  close: () => Promise<void>
}

/** Turns the conformance suite into tests of one mailbox. Each check gets a bench of its own. */
export function runMailboxContract(
  name: string,
  openBench: () => Promise<ClosableMailboxBench>,
): void {
  describe(`${name} keeps the mailbox contract`, () => {
    for (const { topic, title, needs, run } of mailboxContract)
      it(`${topic}: ${title}`, async ({ skip }) => {
        const bench = await openBench()
        try {
          const reason = needs?.(bench.mailbox.powers)
          if (reason !== undefined) skip(reason)
          await run(bench)
        } finally {
          await bench.close()
        }
      }, 60_000)
  })
}

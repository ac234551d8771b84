import { describe, it } from 'vitest'
import type { MailboxBench } from '../../src/testing/index.ts'
import { mailboxContract } from '../../src/testing/index.ts'

/** A bench with cleanup. */
export interface ClosableMailboxBench extends MailboxBench {
  close: () => Promise<void>
}

export interface ContractOptions {
  /**
   * The broker has its own clock, so many checks only wait. They wait together: several checks run
   * at a time.
   */
  realTime?: boolean
}

/** Their load on the broker would delay the checks next to them. */
const alone = ['concurrency', 'names']

/** Turns the conformance suite into tests of one mailbox. Each check gets a bench of its own. */
export function runMailboxContract(
  name: string,
  openBench: () => Promise<ClosableMailboxBench>,
  { realTime = false }: ContractOptions = {},
): void {
  describe(`${name} keeps the mailbox contract`, () => {
    for (const { topic, title, needs, run } of mailboxContract) {
      const concurrent = realTime && !alone.includes(topic)
      it(`${topic}: ${title}`, { concurrent, timeout: 60_000 }, async ({ skip }) => {
        const bench = await openBench()
        try {
          const reason = needs?.(bench.mailbox.powers)
          if (reason !== undefined) skip(reason)
          await run(bench)
        } finally {
          await bench.close()
        }
      })
    }
  })
}

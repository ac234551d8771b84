import { describe, expect, it } from 'vitest'
import { atDepth } from '../depth.ts'
import { lacksPrivate } from '../servers/private.ts'
import { crash } from './mailbox/crash.ts'
import { listViolations } from './mailbox/verdict.ts'

/** In `npm test`, one in a file and one on a broker that counts deliveries itself. */
const inShort = ['sqlite', 'rabbitmq']

const mailboxes = [
  { mailbox: 'sqlite', seconds: 3, lacking: undefined },
  { mailbox: 'postgres', seconds: 3, lacking: lacksPrivate.postgres() },
  { mailbox: 'redis', seconds: 3, lacking: lacksPrivate.redis() },
  { mailbox: 'rabbitmq', seconds: 3, lacking: lacksPrivate.rabbitmq() },
]

// These tests mostly wait for the receipts of killed processes to expire.
describe.concurrent('loops on mailboxes', () => {
  const chosen = mailboxes.filter(({ mailbox }) => inShort.includes(mailbox))
  for (const { mailbox, seconds, lacking } of atDepth(chosen, mailboxes))
    it.skipIf(lacking)(
      `lose nothing in ${mailbox} and store nothing twice under faults${lacking ? ` (${lacking})` : ''}`,
      { timeout: 300_000 },
      async () => {
        const own = mailbox === 'sqlite' ? {} : { mailbox }
        const result = await crash({ ...own, seconds, consumers: 3, seed: 7, keep: false })
        expect(listViolations(result), result.examples.join('\n')).toEqual([])
        expect(result.sent).toBeGreaterThan(0)
        expect(result.processed + result.dead).toBeGreaterThanOrEqual(result.sent)
        expect(result.kills + result.self_kills).toBeGreaterThan(0)
      },
    )
})

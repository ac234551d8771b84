import { describe, expect, it } from 'vitest'
import type { Mailbox } from '../../src/mailbox.ts'
import { mailboxContract } from '../../src/testing/index.ts'
import { brokers, onBroker, startBrokers } from './brokers.ts'
import { clause, row } from './rows.ts'

startBrokers()

describe(row('M2'), () => {
  describe(clause('M2', 'what a broker cannot do is declared in its powers'), () => {
    const offered = (mailbox: Mailbox): object => ({
      browse: mailbox.browse !== undefined,
      durable: mailbox.powers.kind !== 'memory',
    })

    it.each(brokers)('%s offers what it declares, and refuses what it lacks', async (kind) => {
      await onBroker(kind, {}, async ({ mailbox }) => {
        const { powers } = mailbox
        expect(kind.startsWith(powers.kind)).toBe(true)
        expect(powers).toMatchObject(offered(mailbox))
        const delayed = mailbox.send('later', { delaySeconds: powers.maxDelaySeconds ?? 900 })
        if (powers.delay) await delayed
        else await expect(delayed).rejects.toMatchObject({ code: 'INVALID_INPUT' })
        const tooLarge = new Uint8Array(powers.maxBodyBytes + 1)
        await expect(mailbox.send(tooLarge)).rejects.toMatchObject({ code: 'TOO_LARGE' })
      })
    })

    it('each power that a broker may lack has checks that are left out without it', async () => {
      await onBroker('memory', {}, async ({ mailbox }) => {
        const able = { ...mailbox.powers, durable: true, shared: true }
        // Without exact deliveries, a check still runs but is less strict.
        const { kind: _, maxBodyBytes: __, exactDeliveries: ___, ...powers } = able
        for (const power of Object.keys(powers)) {
          const lacking = { ...able, [power]: false }
          const left = mailboxContract.filter(({ needs }) => !needs?.(able) && needs?.(lacking))
          expect(left.length, power).toBeGreaterThan(0)
        }
      })
    })
  })
})

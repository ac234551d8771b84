import { startFauxqs, type FauxqsServer } from 'fauxqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../src/mailbox.ts'
import { kafkaMailbox } from '../../src/mailboxes/kafka/kafka.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { natsMailbox } from '../../src/mailboxes/nats/nats.ts'
import { rabbitmqMailbox } from '../../src/mailboxes/rabbitmq/rabbitmq.ts'
import { queueNameOf } from '../../src/mailboxes/sqs/address.ts'
import { fakeClock, mailboxContract } from '../../src/testing/index.ts'
import type { ClosableMailboxBench } from '../contract/run-mailbox-contract.ts'
import { openMailboxBench } from '../mailboxes/bench.ts'
import { openPostgresBench } from '../mailboxes/postgres/postgres-bench.ts'
import { removeMailboxes } from '../mailboxes/rabbitmq/place.ts'
import { openRedisBench } from '../mailboxes/redis/redis-bench.ts'
import { openSqliteBench } from '../mailboxes/sqlite/sqlite-bench.ts'
import { onFauxqs } from '../mailboxes/sqs/on-fauxqs.ts'
import { kafkaPlace, natsPlace } from '../servers/broker-places.ts'
import { backend, freshName, type Backend } from '../servers/servers.ts'
import { clause, row } from './rows.ts'

let sqs: FauxqsServer
beforeAll(async () => {
  sqs = await startFauxqs({ port: 0, logger: false })
})
afterAll(() => sqs.stop())

const urlOf = (name: Backend): string => backend(name).url

const benches: Record<string, () => Promise<ClosableMailboxBench>> = {
  memory: () => {
    const clock = fakeClock()
    return openMailboxBench({
      make: (name, resolver) => memoryMailbox({ name, clock, resolver }),
      time: clock,
    })
  },
  sqlite: openSqliteBench,
  postgres: () => openPostgresBench(urlOf('postgres')),
  redis: openRedisBench,
  rabbitmq: () =>
    openMailboxBench({
      prefix: `${freshName()} `,
      make: (name, resolver) => rabbitmqMailbox({ url: urlOf('rabbitmq'), name, resolver }),
      leave: (names) => removeMailboxes(urlOf('rabbitmq'), names),
    }),
  nats: () => {
    const url = urlOf('nats')
    const place = natsPlace(url)
    return openMailboxBench({
      make: (name, resolver) => natsMailbox({ name, url, resolver, prefix: place.name }),
      leave: () => place.clear(),
    })
  },
  sqs: () =>
    openMailboxBench({
      make: (name, resolver) => onFauxqs(sqs, { name, resolver }),
      prefix: `${freshName()}-`,
    }),
  'sqs, a FIFO queue': () =>
    openMailboxBench({
      make: (name, resolver) => {
        const url = `sqs://127.0.0.1:${sqs.port}/${queueNameOf(name)}.fifo?region=us-east-1`
        return onFauxqs(sqs, { name, resolver, url })
      },
      prefix: `${freshName()}-`,
    }),
  kafka: () => {
    const url = urlOf('kafka')
    const place = kafkaPlace(url)
    return openMailboxBench({
      make: (name, resolver) => kafkaMailbox({ name, url, resolver, prefix: `${place.name}.` }),
      leave: () => place.clear(),
    })
  },
}

const servers: readonly string[] = ['postgres', 'redis', 'rabbitmq', 'nats', 'kafka']
const isMissing = (kind: string): boolean =>
  servers.includes(kind) && backend(kind as Backend).missing !== undefined

/** Opens a bench for one use and closes it. */
async function withBench<T>(
  kind: string,
  use: (bench: ClosableMailboxBench) => Promise<T>,
): Promise<T> {
  const bench = await benches[kind]!()
  try {
    return await use(bench)
  } finally {
    await bench.close()
  }
}

describe(row('M2'), () => {
  const kinds = Object.keys(benches)

  describe(clause('M2', 'what a broker cannot do is declared in its powers'), () => {
    const offered = (mailbox: Mailbox): object => ({
      browse: mailbox.browse !== undefined,
      durable: mailbox.powers.kind !== 'memory',
    })

    it.each(kinds)('%s offers what it declares, and refuses what it lacks', async (kind) => {
      if (isMissing(kind)) expect.fail(backend(kind as Backend).missing)
      await withBench(kind, async ({ mailbox }) => {
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
      await withBench('memory', async ({ mailbox }) => {
        const able = { ...mailbox.powers, durable: true, shared: true }
        // Without exact deliveries a check still runs and accepts more.
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

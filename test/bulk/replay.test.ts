import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { testMailbox, type TestMailbox } from '../../src/testing/test-mailbox.ts'
import { aQueue, type QueueBench } from '../a-queue.ts'
import { crashingStore, planAndFinish, resultsOf } from './steps.ts'

interface ReplayBench extends QueueBench {
  mailbox: TestMailbox
  letters: DeadLetter[]
}

/** A queue with letters of a mailbox. */
async function aReplay(
  count: number,
  store?: Parameters<typeof aQueue>[1],
  change: Partial<DeadLetter> = {},
): Promise<ReplayBench> {
  const mailbox = testMailbox({ name: 'requests' })
  const bench = await aQueue({ mailboxes: { requests: mailbox } }, store)
  const letters = Array.from({ length: count }, (_, index) =>
    aLetter({
      queue: 'requests',
      state: 'parked',
      source: { kind: 'mailbox', mailbox: 'requests', messageId: `m${index}`, deliveries: 3 },
      ...change,
    }),
  )
  await bench.store.add(letters)
  return { ...bench, mailbox, letters }
}

const sentIds = ({ mailbox }: ReplayBench): string[] =>
  mailbox.sent.map(({ headers }) => headers['redrive-original-id']!)

describe('a bulk replay', () => {
  it('publishes each letter once, with its lineage', async () => {
    const bench = await aReplay(250)
    const done = await planAndFinish(bench, 'replay', { queue: 'requests' })
    expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 250 } })
    expect(sentIds(bench).sort()).toEqual(
      Array.from({ length: 250 }, (_, index) => `m${index}`).sort(),
    )
    expect(bench.mailbox.sent[0]!.headers).toMatchObject({ 'redrive-replays': '1' })
    expect((await bench.dlq.stats()).states.resolved).toBe(250)
    await bench.dlq.close()
  })

  it('publishes again what was perhaps published before a crash, and says so', async () => {
    const bench = await aReplay(3, crashingStore)
    const apply = bench.store.apply.bind(bench.store)
    let crashes = 0
    // Crashes after the messages were sent and before the letters were changed.
    bench.store.apply = async (changes) => {
      if (changes.length > 0 && changes[0]!.action === 'replay' && crashes === 0) {
        crashes += 1
        throw new Error('crashed')
      }
      return apply(changes)
    }
    const done = await planAndFinish(bench, 'replay', { queue: 'requests' })
    expect(done).toMatchObject({ state: 'finished', progress: { indeterminate: 3 } })
    expect(sentIds(bench)).toHaveLength(6)
    expect((await resultsOf(bench, done)).map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: 3 }, () => 'indeterminate'),
    )
    await bench.dlq.close()
  })

  it('publishes nothing twice when only the result was not recorded', async () => {
    const bench = await aReplay(3, crashingStore)
    const done = await planAndFinish(bench, 'replay', { queue: 'requests' })
    expect((bench.store as ReturnType<typeof crashingStore>).crashes).toBe(1)
    expect(done).toMatchObject({ state: 'finished', progress: { succeeded: 3 } })
    expect(sentIds(bench)).toHaveLength(3)
    await bench.dlq.close()
  })

  it('waits while the broker is unreachable, and says why', async () => {
    const bench = await aReplay(3)
    bench.mailbox.failNext('send', undefined, 5)
    const done = await planAndFinish(bench, 'replay', { queue: 'requests' })
    expect(done).toMatchObject({ state: 'finished', progress: { indeterminate: 3 } })
    const problems = bench.eventsOf('bulk').flatMap(({ action }) => action.problem ?? [])
    expect(problems.length).toBeGreaterThan(0)
    expect(done.problem).toBeUndefined()
    await bench.dlq.close()
  })

  it('parks letters at their replay limit', async () => {
    const bench = await aReplay(2, undefined, { replays: 3 })
    await expect(bench.dlq.plan('replay', { queue: 'requests' })).rejects.toThrow(
      'it was replayed 3 times already',
    )
    await bench.dlq.close()
  })

  it('fails for letters without a route, with the reason', async () => {
    const source = { kind: 'mailbox', mailbox: 'gone', messageId: 'm', deliveries: 1 } as const
    const bench = await aReplay(1, undefined, { source })
    const done = await planAndFinish(bench, 'replay', { queue: 'requests' })
    expect(done.progress).toMatchObject({ failed: 1 })
    expect((await resultsOf(bench, done))[0]!.error).toContain('mailbox "gone" is unknown')
    expect((await bench.dlq.stats()).states.parked).toBe(1)
    await bench.dlq.close()
  })

  it('goes to another mailbox on request', async () => {
    const bench = await aReplay(2, undefined, { source: { kind: 'operation', type: 'requests' } })
    await expect(bench.dlq.plan('replay', { queue: 'requests' })).rejects.toThrow('no address')
    const done = await planAndFinish(bench, 'replay', { queue: 'requests' }, { to: 'requests' })
    expect(done.progress).toMatchObject({ succeeded: 2 })
    expect(bench.mailbox.sent).toHaveLength(2)
    await bench.dlq.close()
  })
})

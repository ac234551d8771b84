import { describe, expect, it } from 'vitest'
import { whyUnfixed } from '../../src/groups/fix-check.ts'
import { act, untouched, type GroupState } from '../../src/groups/life-cycle.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { never } from '../../src/policy/backoff.ts'
import { testMailbox, type TestMailbox } from '../../src/testing/test-mailbox.ts'
import { aQueue, type QueueBench } from '../a-queue.ts'
import { by, finish, resultsOf } from '../bulk/steps.ts'

const actor = { at: '2026-01-01T00:00:00.000Z', by: 'ada' }
const resolvedIn = (inVersion?: string): GroupState =>
  act(untouched, { kind: 'resolve', ...(inVersion === undefined ? {} : { inVersion }) }, actor)

const unresolved = 'its group is not resolved in a version yet (option requireFix)'

describe('whyUnfixed', () => {
  it.each<[string, GroupState, string, string | undefined]>([
    ['an open group', untouched, '1.4.0', unresolved],
    ['an ignored group', act(untouched, { kind: 'ignore' }, actor), '1.4.0', unresolved],
    ['a group resolved in no version', resolvedIn(), '1.4.0', unresolved],
    [
      'a group that was opened again',
      act(resolvedIn('1.0.0'), { kind: 'reopen' }, actor),
      '1.4.0',
      unresolved,
    ],
    [
      'a regressed group',
      { ...resolvedIn('1.0.0'), status: 'regressed' },
      '1.4.0',
      'its group was resolved in 1.0.0 and has regressed (option requireFix)',
    ],
    [
      'a later fix',
      resolvedIn('1.10.0'),
      '1.9.0',
      'its group is fixed in 1.10.0, this application is 1.9.0 (option requireFix)',
    ],
    [
      'a prerelease of the fix',
      resolvedIn('1.5.0'),
      '1.5.0-rc.1',
      'its group is fixed in 1.5.0, this application is 1.5.0-rc.1 (option requireFix)',
    ],
    ['the version of the fix', resolvedIn('1.5.0'), '1.5.0', undefined],
    ['an earlier fix', resolvedIn('1.9.0'), '1.10.0', undefined],
    ['an equal version that is not semver', resolvedIn('build-7'), 'build-7', undefined],
    [
      'versions without an order',
      resolvedIn('build-7'),
      'build-8',
      'its group is fixed in build-7, this application is build-8, and the order of these versions is unknown (option requireFix)',
    ],
  ])('%s', (_, state, version, why) => {
    expect(whyUnfixed(state, version)).toBe(why)
  })
})

interface FixBench extends QueueBench {
  mailbox: TestMailbox
  add: (queue: string, cause: string) => Promise<{ id: string; fingerprint: string }>
}

/** A queue of version 1.4.0 in which letters of `orders` need a fix, and others do not. */
async function aFixBench(options: QueueOptions = {}): Promise<FixBench> {
  const mailbox = testMailbox({ name: 'requests' })
  const bench = await aQueue({
    app: { version: '1.4.0' },
    queues: { orders: { requireFix: true } },
    mailboxes: { requests: mailbox },
    ...options,
  })
  const add: FixBench['add'] = (queue, cause) => {
    const error = new Error(cause)
    delete error.stack
    return bench.dlq.enqueue({ type: queue, payload: 1 }, error, { policy: never() })
  }
  return { ...bench, mailbox, add }
}

const to = { to: 'requests' }

describe('requireFix', () => {
  it('refuses the replay of a letter until its group is fixed in this version', async () => {
    const { dlq, mailbox, add } = await aFixBench()
    const { id, fingerprint } = await add('orders', 'bad tax')
    const before = await dlq.get(id)
    const expectRefusal = async (why: string): Promise<void> => {
      const refusal = dlq.replay(id, 'ada', to)
      await expect(refusal).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
      await expect(refusal).rejects.toThrow(`letter ${id} cannot be replayed: ${why}`)
    }
    await expectRefusal('its group is not resolved in a version yet')
    await dlq.resolveGroup(fingerprint, 'ada')
    await expectRefusal('its group is not resolved in a version yet')
    await dlq.resolveGroup(fingerprint, 'ada', { inVersion: '1.5.0' })
    await expectRefusal('its group is fixed in 1.5.0, this application is 1.4.0')
    expect(await dlq.get(id)).toEqual(before)
    expect(mailbox.sent).toEqual([])
    await dlq.resolveGroup(fingerprint, 'ada', { inVersion: '1.4.0' })
    expect(await dlq.replay(id, 'ada', to)).toMatchObject({ state: 'resolved' })
    await dlq.close()
  })

  it('does not limit other queues, a retry of one letter, or other bulk actions', async () => {
    const { dlq, add } = await aFixBench()
    const order = await add('orders', 'bad tax')
    const mail = await add('mail', 'bad address')
    expect(await dlq.replay(mail.id, 'ada', to)).toMatchObject({ state: 'resolved' })
    expect(await dlq.retry(order.id, 'ada')).toMatchObject({ state: 'pending' })
    expect(await dlq.plan('archive', { queue: 'orders' })).toMatchObject({ count: 1 })
    await dlq.close()
  })

  it('counts a merged group by its root', async () => {
    const { dlq, add } = await aFixBench()
    const one = await add('orders', 'bad tax')
    const other = await add('orders', 'wrong rate')
    await dlq.mergeGroups(other.fingerprint, [one.fingerprint], 'ada')
    await expect(dlq.replay(one.id, 'ada', to)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
    await dlq.resolveGroup(other.fingerprint, 'ada', { inVersion: '1.4.0' })
    expect(await dlq.replay(one.id, 'ada', to)).toMatchObject({ state: 'resolved' })
    await dlq.close()
  })

  it.each(['retry', 'replay'] as const)(
    'leaves letters of other groups out of a bulk %s, with the reason',
    async (action) => {
      const bench = await aFixBench()
      const { dlq, add } = bench
      dlq.handle('orders', async () => {})
      const [fixed, later, open, mail] = [
        await add('orders', 'bad tax'),
        await add('orders', 'wrong rate'),
        await add('orders', 'no stock'),
        await add('mail', 'bad address'),
      ]
      await dlq.resolveGroup(fixed.fingerprint, 'ada', { inVersion: '1.3.0' })
      await dlq.resolveGroup(later.fingerprint, 'ada', { inVersion: '2.0.0' })
      const options = action === 'replay' ? { ...by, ...to } : by
      const plan = await dlq.plan(action, {}, options)
      expect(plan.sample.map(({ id }) => id)).toEqual([fixed.id, mail.id])
      expect(plan.ineligible.sample).toEqual([
        {
          id: later.id,
          reason: 'its group is fixed in 2.0.0, this application is 1.4.0 (option requireFix)',
        },
        { id: open.id, reason: unresolved },
      ])
      await dlq.close()
    },
  )

  it.each(['retry', 'replay'] as const)('is checked again when a bulk %s acts', async (action) => {
    const bench = await aFixBench()
    const { dlq, add, mailbox } = bench
    let runs = 0
    dlq.handle('orders', async () => void (runs += 1))
    const stays = await add('orders', 'bad tax')
    const reopened = await add('orders', 'wrong rate')
    for (const { fingerprint } of [stays, reopened])
      await dlq.resolveGroup(fingerprint, 'ada', { inVersion: '1.4.0' })
    const options = action === 'replay' ? { ...by, ...to } : by
    const plan = await dlq.plan(action, { queue: 'orders' }, options)
    await dlq.reopenGroup(reopened.fingerprint, 'ada')
    const done = await finish(bench, plan)
    expect(await resultsOf(bench, done)).toMatchObject([
      { id: stays.id, outcome: 'succeeded' },
      { id: reopened.id, outcome: 'skipped', error: unresolved },
    ])
    expect(action === 'replay' ? mailbox.sent.length : runs).toBe(1)
    expect(await dlq.get(reopened.id)).toMatchObject({ version: 1 })
    await dlq.close()
  })
})

import { expect, it } from 'vitest'
import type { AlertRule } from '../../src/policy/alert-rule.ts'
import { aQueue, forbidden, refused, type QueueBench } from '../a-queue.ts'

const alerts: AlertRule[] = [
  { name: 'new', when: { metric: 'new-group', above: 1 }, severity: 'warning' },
  { name: 'back', when: { metric: 'regressed-group' }, severity: 'critical' },
]

const changesOf = ({ eventsOf }: QueueBench): string[] =>
  eventsOf('alert').map(({ state, alert }) => (state === 'raised' ? '+' : '-') + alert.name)

it('raises once for a new group and each time that it regresses', async () => {
  const bench = await aQueue({ alerts, redeliver: false })
  const { dlq, clock } = bench
  dlq.start()
  const fail = async (count: number): Promise<string> => {
    let id = ''
    for (let n = 0; n < count; n++) {
      const letter = await dlq.enqueue({ type: 'orders', payload: n }, forbidden())
      id = letter.id
    }
    await clock.advance(70_000)
    return id
  }
  const id = await fail(1)
  expect(changesOf(bench)).toEqual([])
  await fail(50)
  const { fingerprint } = (await dlq.get(id))!
  expect(changesOf(bench)).toEqual([`+new:${fingerprint}`])
  expect(await dlq.alerts()).toMatchObject([
    {
      group: fingerprint,
      queue: 'orders',
      title: expect.stringContaining('Forbidden'),
      summary: 'new cause of failures: Error in queue orders, 51 failures',
    },
  ])
  await dlq.resolveGroup(fingerprint, 'mia')
  await clock.advance(70_000)
  await fail(3)
  await fail(3)
  expect(changesOf(bench)).toEqual([
    `+new:${fingerprint}`,
    `-new:${fingerprint}`,
    `+back:${fingerprint}`,
  ])
  await dlq.resolveGroup(fingerprint, 'mia')
  await clock.advance(70_000)
  await fail(1)
  expect(changesOf(bench).slice(3)).toEqual([`-back:${fingerprint}`, `+back:${fingerprint}`])
  await dlq.close()
})

it('clears a new group when none of its letters is open', async () => {
  const bench = await aQueue({ alerts, redeliver: false })
  const { dlq, clock } = bench
  dlq.start()
  const letters = []
  for (let n = 0; n < 2; n++) letters.push(await dlq.enqueue({ type: 'a' }, refused()))
  await clock.advance(70_000)
  for (const { id } of letters) await dlq.resolve(id, 'mia')
  await clock.advance(70_000)
  expect(changesOf(bench).map((change) => change.slice(0, 4))).toEqual(['+new', '-new'])
  await dlq.close()
})

it('forgets after a day that a group was new', async () => {
  const { dlq, clock, store } = await aQueue({ alerts, redeliver: false, sweepMs: 60_000 })
  dlq.start()
  await dlq.enqueue({ type: 'a' }, refused())
  await clock.advance(70_000)
  expect(await store.records.list('group-new')).toHaveLength(1)
  await clock.advance(86_400_000)
  expect(await store.records.list('group-new')).toHaveLength(0)
  await dlq.close()
})

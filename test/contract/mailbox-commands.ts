import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import type { ErrorCode } from '../../src/errors.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import type { Item, MailboxModel } from './mailbox-model.ts'
import type { ClosableMailboxBench } from './run-mailbox-contract.ts'
import { stepsOf, type Steps } from './step.ts'

/** The real mailbox, and all deliveries that a slow or stale client could still hold. */
export interface Real {
  bench: ClosableMailboxBench
  mailbox: Mailbox
  realTime: boolean
  /** All deliveries, never removed: stale ones are used again. */
  given: Message[]
  sent: string[]
  /** Deliveries of a closed handle. */
  closed: Set<Message>
  /** Cases that the run covered. */
  reached: Set<string>
}

/** Applies the step to both sides and compares. */
const steps = stepsOf<MailboxModel, Real>((act) => async (model, real) => {
  model.nowMs = real.bench.now()
  await act(model, real)
  await compare(model, real)
})

const token = fc.nat(1000)
const pick = <T>(from: readonly T[], n: number): T | undefined => from[n % Math.max(1, from.length)]

/** Mostly one of the last few deliveries; older ones occur often enough. */
const recent = <T>(from: readonly T[], n: number): T | undefined =>
  pick(n % 4 === 0 ? from : from.slice(-6), n)

const seconds = fc.constantFrom(0, 0, 1, 3, 60)

const send = steps(
  'send',
  fc.record({ delay: seconds, count: fc.integer({ min: 1, max: 4 }) }),
  async ({ delay, count }, model, { mailbox, sent }) => {
    const delaySeconds = mailbox.powers.delay ? delay : 0
    for (let n = 0; n < count; n++) {
      const id = `m${sent.length}`
      sent.push(id)
      assert.equal(await mailbox.send({ id }, { id, delaySeconds }), id)
      model.send(id, delaySeconds * 1000)
    }
  },
)

const sendAgain = steps('sendAgain', token, async (n, model, { mailbox, reached }) => {
  // The contract does not specify repeated ids of removed messages.
  const kept = pick(model.items, n)
  if (!kept || !mailbox.powers.deduplicates) return
  assert.equal(await mailbox.send('another', { id: kept.id }), kept.id)
  reached.add('sent twice')
})

const receive = steps(
  'receive',
  fc.record({ max: fc.constantFrom(1, 1, 2, 3, 10), visibilitySeconds: seconds }),
  async ({ max, visibilitySeconds }, model, real) => {
    const { powers } = real.mailbox
    const { surely } = model.visible()
    const fresh = surely.filter((item) => item.fresh).map((item) => item.id)
    const waitSeconds = real.realTime && surely.length > 0 ? 3 : 0
    const batch = await real.mailbox.receive({ max, visibilitySeconds, waitSeconds })
    model.nowMs = real.bench.now()
    const enough = real.realTime ? Math.min(1, surely.length) : Math.min(max, surely.length)
    assert.ok(batch.length >= enough, `${batch.length} messages, where ${surely.length} are there`)
    assert.ok(batch.length <= max, `${batch.length} messages, but at most ${max} were requested`)
    if (powers.ordered) {
      const taken = batch.map((message) => message.id).filter((id) => fresh.includes(id))
      assert.deepEqual(taken, fresh.slice(0, taken.length), 'order of sending')
    }
    const visibilityMs = powers.visibility ? visibilitySeconds * 1000 : Infinity
    for (const message of batch) {
      const item = model.give(message.id, visibilityMs)
      compareDelivery(message, item, real)
      real.given.push(message)
    }
  },
)

function compareDelivery(
  message: Message,
  item: Item,
  { realTime, mailbox, given, reached }: Real,
): void {
  assert.deepEqual(message.value(), { id: item.id })
  assert.equal(message.deliveries, item.deliveries, 'deliveries')
  const earlier = given.find((one) => one.id === message.id)
  if (mailbox.powers.remembers) {
    assert.equal(message.failures, item.failures, 'failures')
    if (earlier) assert.equal(message.firstReceivedAt, earlier.firstReceivedAt)
  }
  if (earlier) assert.equal(message.enqueuedAt, earlier.enqueuedAt)
  if (!realTime) {
    assert.equal(message.enqueuedAt, toTimestamp(item.enqueuedMs))
    assert.equal(message.firstReceivedAt, toTimestamp(item.firstReceivedMs!))
    assert.equal(message.visibleAt, toTimestamp(item.latestMs))
  }
  if (message.deliveries > 1) reached.add('delivered again')
  if (message.failures > 0) reached.add('failed before')
}

/**
 * Applies an action to the real message, which must answer like the model, and to the model if
 * allowed.
 */
async function use(
  what: 'acknowledge' | 'nack' | 'extend',
  n: number,
  sides: { model: MailboxModel; real: Real },
  toReal: (message: Message) => Promise<void>,
  toModel: (message: Message) => void,
): Promise<void> {
  const { model, real } = sides
  const message = recent(real.given, n)
  if (!message) return
  const isOver = message.finalized
  const holds = model.holds(message)
  // Too close to its expiry.
  if (holds === undefined && !isOver && !real.closed.has(message)) return
  const refusal = isOver
    ? 'MESSAGE_FINALIZED'
    : real.closed.has(message)
      ? 'CLOSED'
      : holds
        ? undefined
        : 'RECEIPT_EXPIRED'
  const answer = await toReal(message).then(
    () => undefined,
    (error: unknown) => (error as { code: ErrorCode }).code,
  )
  model.nowMs = real.bench.now()
  assert.equal(answer, refusal, `${what} of ${message.id}, delivery ${message.deliveries}`)
  assert.equal(message.finalized, isOver || (refusal === undefined && what !== 'extend'))
  if (refusal === undefined) toModel(message)
  real.reached.add(`${what}: ${refusal ?? 'done'}`)
}

const acknowledge = steps('acknowledge', token, (n, model, real) =>
  use(
    'acknowledge',
    n,
    { model, real },
    (message) => message.acknowledge(),
    (message) => model.acknowledge(message),
  ),
)

const nack = steps(
  'nack',
  fc.record({ token, delay: seconds, failed: fc.boolean() }),
  ({ token: n, delay, failed }, model, real) => {
    const { powers } = real.mailbox
    const delaySeconds = powers.delay ? delay : 0
    const counts = failed || !powers.remembers
    return use(
      'nack',
      n,
      { model, real },
      (message) => message.nack({ delaySeconds, failed }),
      (message) => model.nack(message, { delayMs: delaySeconds * 1000, failed, counts }),
    )
  },
)

const extension = fc.record({ token, by: fc.constantFrom(0, 1, 3, 3, 60) })
const extend = steps('extend', extension, async (picks, model, real) => {
  if (!real.mailbox.powers.extend) return
  await use(
    'extend',
    picks.token,
    { model, real },
    (message) => message.extend(picks.by),
    (message) => model.extend(message, picks.by * 1000),
  )
})

/** Rare, since little is left to compare afterwards. */
const purge = steps('purge', fc.nat(4), async (n, model, { mailbox, reached }) => {
  if (n > 0 || !mailbox.powers.purge) return
  const gone = await mailbox.purge()
  const expected = model.purge()
  if (mailbox.powers.exactCount) assert.equal(gone, expected, 'purged')
  if (expected > 0) reached.add('purged')
})

const advance = (ms: fc.Arbitrary<number>): Steps<MailboxModel, Real> =>
  steps('advance', ms, (picked, _model, { bench }) => bench.advance(picked))

const reopen = steps('reopen', fc.constant(0), async (_, model, real) => {
  const { bench, mailbox } = real
  if (!mailbox.powers.durable || !bench.reopen) return
  for (const message of real.given) real.closed.add(message)
  model.handleClosed()
  real.mailbox = await bench.reopen()
})

/** With real time, only short waits are used. */
export function commandsFor(realTime: boolean): Steps<MailboxModel, Real>[] {
  const often = [send, send, receive, receive, receive, acknowledge, acknowledge, nack, nack]
  const seldom = [sendAgain, extend, extend, purge, reopen]
  if (realTime) return [...often, ...often, ...seldom, advance(fc.constant(1500))]
  const time = advance(fc.constantFrom(1, 400, 999, 1000, 1001, 3000, 61_000))
  return [...often, ...seldom, time, time]
}

/** Cases that a set of runs must cover. */
export const landmarks = [
  'sent twice',
  'delivered again',
  'failed before',
  'purged',
  ...['acknowledge', 'nack', 'extend'].flatMap((what) =>
    ['done', 'RECEIPT_EXPIRED', 'MESSAGE_FINALIZED'].map((answer) => `${what}: ${answer}`),
  ),
]

/** Compares both sides, as far as they are observable. */
export async function compare(model: MailboxModel, { mailbox }: Real): Promise<void> {
  const { powers } = mailbox
  if (powers.exactCount)
    assert.equal(await mailbox.approximateCount(), model.items.length, 'number of messages')
  if (!mailbox.browse) return
  const { messages } = await mailbox.browse({ limit: 1000 })
  const seen = (one: { id: string; deliveries: number; failures: number }): unknown =>
    powers.remembers ? [one.id, one.deliveries, one.failures] : one.id
  assert.deepEqual(messages.map(seen), model.items.map(seen))
}

import assert from 'node:assert/strict'
import { sleep, systemClock } from '../../clock/clock.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Mailbox, Message, ReceiveOptions } from '../../mailbox.ts'
import type { MailboxBench } from './check.ts'

/** A visibility timeout that checks wait for: the minimum of brokers that use whole seconds. */
export const shortSeconds = 1
/** Long enough for `shortSeconds` to expire, with a margin for clocks and brokers. */
export const lapseMs = 1200
/** A visibility timeout that does not expire during a check. */
export const longSeconds = 60

/** Maximum difference between the clocks of the broker and the bench. */
export const toleranceMs = 5000

const stepMs = 50
const settleMs = 20

/**
 * Awaits the promise, and fails if it does not settle within `ms` of the bench's time. Time
 * advances in small steps, each after a short real wait in which the promise may settle. A step of
 * real time ends as soon as the promise settles.
 */
export async function waitWithin<T>(
  bench: MailboxBench,
  ms: number,
  promise: Promise<T>,
): Promise<T> {
  const settled = promise.then(
    () => true,
    () => true,
  )
  for (let spent = 0; spent <= ms; spent += stepMs) {
    const done = await Promise.race([settled, sleep(systemClock, settleMs).then(() => false)])
    if (done) return promise
    const advanced = bench.advance(stepMs)
    await (bench.hasFakeTime === false ? Promise.race([settled, advanced]) : advanced)
  }
  assert.fail(`the call did not settle within ${ms} ms`)
}

/** Receives until it has `count` messages. Fails if a receive returns none. */
export async function receiveMany(
  bench: MailboxBench,
  count: number,
  options: ReceiveOptions = {},
  from: Mailbox = bench.mailbox,
): Promise<Message[]> {
  const taken: Message[] = []
  while (taken.length < count) {
    const max = Math.min(10, count - taken.length)
    const request = { max, visibilitySeconds: longSeconds, waitSeconds: 5, ...options }
    const batch = await waitWithin(bench, 10_000, from.receive(request))
    assert.ok(batch.length > 0, `expected ${count} messages, got ${taken.length}`)
    taken.push(...batch)
  }
  return taken
}

export async function receiveOne(
  bench: MailboxBench,
  options: ReceiveOptions = {},
  from: Mailbox = bench.mailbox,
): Promise<Message> {
  const [message] = await receiveMany(bench, 1, options, from)
  return message!
}

/** No message is available now. */
export async function expectEmpty(from: Mailbox, why?: string): Promise<void> {
  assert.deepEqual(values(await from.receive({ max: 10, visibilitySeconds: longSeconds })), [], why)
}

/** Sends one body after the other, and returns the ids. */
export async function sendAll(to: Mailbox, bodies: readonly unknown[]): Promise<string[]> {
  const sent: string[] = []
  for (const body of bodies) sent.push(await to.send(body))
  return sent
}

export async function acknowledgeAll(messages: readonly Message[]): Promise<void> {
  await Promise.all(messages.map((message) => message.acknowledge()))
}

export function values(messages: readonly Message[]): unknown[] {
  return messages.map((message) => message.value())
}

export function ids(messages: readonly { id: string }[]): string[] {
  return messages.map((message) => message.id)
}

/** The same strings or numbers, in any order. */
export function expectSameSet(actual: readonly unknown[], expected: readonly unknown[]): void {
  assert.deepEqual(actual.map(String).toSorted(), expected.map(String).toSorted())
}

/** Compares bytes as bytes, since some drivers hand out Buffers. */
export function expectSameBytes(actual: Uint8Array, expected: Uint8Array, what: string): void {
  assert.equal(actual.byteLength, expected.byteLength, `${what}: number of bytes`)
  assert.ok(Buffer.compare(actual, expected) === 0, `${what}: bytes differ`)
}

export async function expectRejection(
  code: ErrorCode,
  act: () => Promise<unknown>,
  what = '',
): Promise<void> {
  let result: Promise<unknown>
  try {
    result = act()
  } catch (error) {
    assert.fail(`${what} must reject, but threw: ${String(error)}`)
  }
  await assert.rejects(
    result,
    (error: unknown) => {
      assert.equal((error as { code?: unknown }).code, code, `${what}: ${String(error)}`)
      return true
    },
    `${what} must reject with ${code}`,
  )
}

/** A string where the types require a number. */
export function asNumber(value: string): number {
  return value as unknown as number
}

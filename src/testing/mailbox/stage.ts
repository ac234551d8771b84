import assert from 'node:assert/strict'
import { sleep, systemClock } from '../../clock/clock.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Mailbox, Message, ReceiveOptions } from '../../mailbox.ts'
import type { MailboxBench } from './check.ts'

/** A visibility that is waited for: the least that brokers with whole seconds know. */
export const shortSeconds = 1
/** Longer than that, by what clocks and brokers need. */
export const lapseMs = 1200
/** A visibility that no check lives to see the end of. */
export const longSeconds = 60

/** How far a broker's clock may be from what the bench believes. */
export const toleranceMs = 5000

const stepMs = 50
const patienceMs = 20

/**
 * What the promise gives, which must be before so much of the bench's time has passed. Time is
 * moved in small steps, and only after the promise had a moment to be kept without.
 */
export async function within<T>(bench: MailboxBench, ms: number, promise: Promise<T>): Promise<T> {
  const kept = promise.then(
    () => true,
    () => true,
  )
  for (let spent = 0; spent <= ms; spent += stepMs) {
    const done = await Promise.race([kept, sleep(systemClock, patienceMs).then(() => false)])
    if (done) return promise
    await bench.advance(stepMs)
  }
  assert.fail(`there was no answer within ${ms} ms`)
}

/** Receives until it has so many, each of which must come soon. */
export async function take(
  bench: MailboxBench,
  count: number,
  options: ReceiveOptions = {},
  from: Mailbox = bench.mailbox,
): Promise<Message[]> {
  const taken: Message[] = []
  while (taken.length < count) {
    const max = Math.min(10, count - taken.length)
    const asked = { max, visibilitySeconds: longSeconds, waitSeconds: 5, ...options }
    const batch = await within(bench, 10_000, from.receive(asked))
    assert.ok(batch.length > 0, `${count} messages come, not ${taken.length}`)
    taken.push(...batch)
  }
  return taken
}

export async function takeOne(
  bench: MailboxBench,
  options: ReceiveOptions = {},
  from: Mailbox = bench.mailbox,
): Promise<Message> {
  const [message] = await take(bench, 1, options, from)
  return message!
}

/** Nothing is to be had at this moment. */
export async function nothing(from: Mailbox, why?: string): Promise<void> {
  assert.deepEqual(values(await from.receive({ max: 10, visibilitySeconds: longSeconds })), [], why)
}

/** Sends one after the other, and answers with the ids. */
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

/** The same strings or numbers, in whatever order. */
export function sameSet(actual: readonly unknown[], expected: readonly unknown[]): void {
  assert.deepEqual(actual.map(String).toSorted(), expected.map(String).toSorted())
}

/** Compares bytes as bytes, since some drivers hand out Buffers. */
export function sameBytes(actual: Uint8Array, expected: Uint8Array, what: string): void {
  assert.equal(actual.byteLength, expected.byteLength, `${what}: as many bytes`)
  assert.ok(Buffer.compare(actual, expected) === 0, `${what}: the same bytes`)
}

export async function rejectsWith(
  code: ErrorCode,
  act: () => Promise<unknown>,
  what = '',
): Promise<void> {
  let answer: Promise<unknown>
  try {
    answer = act()
  } catch (error) {
    assert.fail(`${what} rejects rather than throws: ${String(error)}`)
  }
  await assert.rejects(
    answer,
    (error: unknown) => {
      assert.equal((error as { code?: unknown }).code, code, `${what}: ${String(error)}`)
      return true
    },
    `${what} rejects with ${code}`,
  )
}

/** A number where the types promise none. */
export function text(value: string): number {
  return value as unknown as number
}

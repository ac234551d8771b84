import { RedriveError } from '../errors.ts'
import { checkKeys, checkOneOf, keysOf } from '../check/keys.ts'
import { decodePayload } from '../letter/payload.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Mailbox, MailboxDriver, MailboxResolver, OutgoingMessage } from '../mailbox.ts'
import { mailbox } from '../mailboxes/mailbox.ts'
import { MemoryMailbox } from '../mailboxes/memory/memory.ts'
import { payloadOf } from '../mailboxes/message.ts'
import { fakeClock, type FakeClock } from './fake-clock.ts'

export interface TestMailboxOptions {
  /** Default: "test". */
  name?: string
  /** Default: an own fake clock. Pass one clock to mailboxes and loops that share their time. */
  clock?: FakeClock
  /** Where replies go. Default: to the mailboxes of `repliesTo`. */
  resolver?: MailboxResolver
  /** Messages older than this are removed. Default: 0, they never expire. */
  retentionSeconds?: number
}

const operations = ['send', 'receive', 'acknowledge', 'nack', 'extend', 'reply'] as const

/** Operations that can be made to fail. */
export type TestMailboxOperation = (typeof operations)[number]

export interface SentMessage {
  id: string
  /** The decoded body, or its bytes if they cannot be decoded. */
  value: unknown
  headers: Record<string, string>
  replyTo?: string
  delaySeconds: number
  sentAt: Timestamp
}

/** How a delivery ended. */
export type SettledMessage =
  | { id: string; outcome: 'acknowledged' }
  | { id: string; outcome: 'nacked'; failed: boolean; delaySeconds: number }

/**
 * An in-memory mailbox for tests: it records all operations, fails on request, and the test
 * controls its time.
 */
export interface TestMailbox extends Mailbox {
  readonly clock: FakeClock
  /** Sent messages, in order, without those whose send failed. */
  readonly sent: readonly SentMessage[]
  /** How deliveries ended, in order. */
  readonly settled: readonly SettledMessage[]
  /**
   * Makes the next calls of an operation fail, before they do anything; failures given first come
   * first. Default: once, with MAILBOX_UNAVAILABLE.
   */
  failNext(operation: TestMailboxOperation, error?: unknown, times?: number): void
  /**
   * Ends deliveries that are not settled, as if their receivers had died, and returns how many: the
   * messages are delivered again, and the old receipts are rejected. Default: all.
   */
  redeliver(id?: string): number
  /** Lets time pass on `clock`. */
  advance(ms: number): Promise<void>
  /**
   * The mailbox that receives the replies to this name. Always the same one for a name; used where
   * no `resolver` is given.
   */
  repliesTo(name: string): TestMailbox
}

const optionKeys = keysOf<TestMailboxOptions>({
  name: true,
  clock: true,
  resolver: true,
  retentionSeconds: true,
})

/** A recordOperations mailbox in memory, open from the start. */
export function testMailbox(options: TestMailboxOptions = {}): TestMailbox {
  checkKeys('test mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  const { name = 'test', clock = fakeClock(), retentionSeconds = 0 } = options
  const memory = new MemoryMailbox({ name, retentionSeconds }, clock)
  const sent: SentMessage[] = []
  const settled: SettledMessage[] = []
  const failures = new Map<TestMailboxOperation, unknown[]>()
  const replies = new Map<string, TestMailbox>()
  const failIfPlanned = (operation: TestMailboxOperation): void => {
    const planned = failures.get(operation) ?? []
    if (planned.length > 0) throw planned.shift()
  }
  const repliesTo = (to: string): TestMailbox => {
    const replyMailbox = replies.get(to) ?? testMailbox({ name: to, clock })
    replies.set(to, replyMailbox)
    return replyMailbox
  }
  const resolver: MailboxResolver = {
    async resolve(to) {
      failIfPlanned('reply')
      return options.resolver ? options.resolver.resolve(to) : repliesTo(to)
    },
    close: async () => options.resolver?.close?.(),
  }
  const driver = recordOperations({ memory, clock, sent, settled, failIfPlanned })
  return Object.assign(mailbox(driver, { clock, resolver, retentionSeconds }), {
    clock,
    sent,
    settled,
    repliesTo,
    redeliver: (id?: string) => memory.lapse(id),
    advance: (ms: number) => clock.advance(ms),
    failNext(operation: TestMailboxOperation, error: unknown = unavailable(name), times = 1) {
      checkOneOf('operation of a test mailbox', operation, operations)
      const planned = failures.get(operation) ?? []
      failures.set(operation, [...planned, ...Array.from({ length: times }, () => error)])
    },
  })
}

interface Recording {
  memory: MemoryMailbox
  clock: FakeClock
  sent: SentMessage[]
  settled: SettledMessage[]
  /** Throws if the test planned a failure of this operation. */
  failIfPlanned: (operation: TestMailboxOperation) => void
}

function recordOperations({
  memory,
  clock,
  sent,
  settled,
  failIfPlanned,
}: Recording): MailboxDriver {
  /** Message ids by receipt. */
  const delivered = new Map<string, string>()
  return {
    name: memory.name,
    powers: memory.powers,
    open: () => memory.open(),
    close: () => memory.close(),
    onExpired: (report) => memory.onExpired(report),
    async send(outgoing, delayMs) {
      failIfPlanned('send')
      await memory.send(outgoing, delayMs)
      sent.push(toSentMessage(outgoing, delayMs, clock.now()))
    },
    async receive(request) {
      failIfPlanned('receive')
      const deliveries = await memory.receive(request)
      for (const { receipt, id } of deliveries) delivered.set(receipt, id)
      return deliveries
    },
    async acknowledge(receipt) {
      failIfPlanned('acknowledge')
      const isDone = await memory.acknowledge(receipt)
      if (isDone) settled.push({ id: delivered.get(receipt)!, outcome: 'acknowledged' })
      return isDone
    },
    async nack(receipt, { delayMs, failed }) {
      failIfPlanned('nack')
      const isDone = await memory.nack(receipt, { delayMs, failed })
      const delaySeconds = delayMs / 1000
      if (isDone)
        settled.push({ id: delivered.get(receipt)!, outcome: 'nacked', failed, delaySeconds })
      return isDone
    },
    async extend(receipt, ms) {
      failIfPlanned('extend')
      return memory.extend(receipt, ms)
    },
    browse: (after, limit) => memory.browse(after, limit),
    purge: () => memory.purge(),
    count: () => memory.count(),
    health: () => memory.health(),
  }
}

function toSentMessage(outgoing: OutgoingMessage, delayMs: number, nowMs: number): SentMessage {
  const { id, headers, replyTo } = outgoing
  return {
    id,
    value: valueOf(outgoing),
    headers: { ...headers },
    ...(replyTo === undefined ? {} : { replyTo }),
    delaySeconds: delayMs / 1000,
    sentAt: toTimestamp(nowMs),
  }
}

function valueOf(outgoing: OutgoingMessage): unknown {
  try {
    return decodePayload(payloadOf(outgoing))
  } catch {
    return new Uint8Array(outgoing.bytes)
  }
}

function unavailable(name: string): RedriveError {
  return new RedriveError('MAILBOX_UNAVAILABLE', `the test made the mailbox ${name} fail`)
}

import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type {
  ReceiveRequest,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  OutgoingMessage,
} from '../../mailbox.ts'
import { serverOf, settingsIn } from '../../backends/redis/address.ts'
import { checkUrlOrClient } from '../../backends/injected-client.ts'
import { checkSchema, inspect, refuseDangers } from '../../backends/redis/safety.ts'
import {
  RedisConnection,
  type Argument,
  type RedisClient,
} from '../../backends/redis/connection.ts'
import { mailbox } from '../mailbox.ts'
import { retentionMsOf } from '../../backends/retention.ts'
import { Notifications } from './notifications.ts'
import { pack, unpack } from './packing.ts'
import { scripts } from './scripts.ts'
import { tenant } from './tenant.ts'
import { costOf, TimedBatcher } from './timed-batcher.ts'

export interface RedisMailboxOptions {
  name: string
  /**
   * `redis://user:password@host:6379/0`, or `rediss://` over TLS; several hosts, separated by
   * commas, for a cluster. May contain the options from `prefix` on, as in `?prefix=…`.
   */
  url?: string
  /**
   * A connected client of the application, from `createClient` of the `redis` package, which stays
   * open when the mailbox closes. A duplicate of it subscribes to wake-ups. Either `url` or
   * `client` is required.
   */
  client?: RedisClient
  /** For ids and waiting. Visibility and expiry use the clock of the server. */
  clock?: Clock
  resolver?: MailboxResolver
  /** The beginning of all keys, before the name. Default: `redrive`. */
  prefix?: string
  /**
   * Messages older than this are removed when the mailbox is received from. Default: 0, messages
   * never expire.
   */
  retentionSeconds?: number
  /**
   * The maximum number of messages, including hidden ones; more are rejected with MAILBOX_FULL.
   * Default: no limit.
   */
  maxMessages?: number
  /** Opens the mailbox even if the server may lose messages. Default: false. */
  allowVolatile?: boolean
  /** How many replicas must have a message before its sending is acknowledged. Default: 0. */
  waitReplicas?: number
  /** The time limit of a call. Default: 5000. */
  timeoutMs?: number
}

const optionKeys = keysOf<RedisMailboxOptions>({
  name: true,
  url: true,
  client: true,
  clock: true,
  resolver: true,
  prefix: true,
  retentionSeconds: true,
  maxMessages: true,
  allowVolatile: true,
  waitReplicas: true,
  timeoutMs: true,
})

/**
 * A mailbox in Redis, for any number of processes. Every operation is one script, and so is atomic.
 * All keys have one hash tag: in a cluster, a mailbox is on one node, and several mailboxes are
 * spread over all nodes.
 */
export function redisMailbox(options: RedisMailboxOptions): Mailbox {
  checkKeys('redis mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  checkUrlOrClient(options.url, options.client, 'client')
  const { clock = systemClock, resolver } = options
  const settings = { ...settingsIn(options.url ?? '', urlNumbers), ...options }
  const { retentionSeconds = 0 } = settings
  const driver = new RedisMailbox(settings, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** Settings of the URL that are numbers. */
const urlNumbers = ['waitReplicas', 'timeoutMs', 'retentionSeconds', 'maxMessages'] as const

/** The time limit for opening a connection. */
const maxConnectMs = 2000

/**
 * What to do with a receipt: a acknowledge, f return as failed, n return untried, u return unseen,
 * e extend.
 */
type Operation = 'a' | 'f' | 'n' | 'u' | 'e'

interface Taken {
  found: Delivery[]
  /** When a hidden message may become visible. */
  dueMs: number
}

const nothing: Taken = { found: [], dueMs: Infinity }

class RedisMailbox implements MailboxDriver {
  readonly name: string
  readonly #options: RedisMailboxOptions
  readonly #clock: Clock
  readonly #retentionMs: number
  readonly #connection: RedisConnection
  readonly #notifications: Notifications
  readonly #sends: TimedBatcher<Argument[], number>
  readonly #receives: TimedBatcher<ReceiveRequest, Taken>
  readonly #settles: TimedBatcher<Argument[], boolean>
  #opened = false
  #durable: boolean | undefined
  #report: (count: number) => void = () => {}

  constructor(options: RedisMailboxOptions, clock: Clock) {
    checkOptions(options)
    const { name, prefix = 'redrive', waitReplicas = 0, timeoutMs = 5000 } = options
    this.name = name
    this.#options = options
    this.#clock = clock
    this.#retentionMs = retentionMsOf(options.retentionSeconds)
    // A fixed word follows the tag in each key, so that no two names lead to the same key.
    const tag = `{${prefix}/${name}}`
    const server = serverOf(options)
    const connectMs = Math.min(maxConnectMs, timeoutMs)
    this.#connection = new RedisConnection({
      tenant,
      server,
      tag,
      waitReplicas,
      timeoutMs,
      connectMs,
    })
    this.#notifications = new Notifications(this.#connection, `${tag}:wake`, clock)
    // Separate batchers, since the same callers mostly send, receive and settle in turn.
    this.#sends = new TimedBatcher(timeoutMs, (messages) => this.#sendAll(messages))
    this.#receives = new TimedBatcher(timeoutMs, (asks) => this.#receiveAll(asks))
    this.#settles = new TimedBatcher(timeoutMs, (requests) => this.#settleAll(requests))
  }

  get powers(): MailboxPowers {
    return {
      kind: 'redis',
      durable: this.#durable ?? this.#options.allowVolatile !== true,
      shared: true,
      visibility: true,
      extend: true,
      delay: true,
      remembers: true,
      exactDeliveries: true,
      ordered: true,
      exactCount: true,
      purge: true,
      browse: true,
      deduplicates: true,
      maxBodyBytes: 16 * 1024 ** 2,
    }
  }

  onExpired(report: (count: number) => void): void {
    this.#report = report
  }

  async open(): Promise<void> {
    try {
      const inspection = await inspect(this.#connection)
      refuseDangers(inspection, this.#connection, this.#options.allowVolatile === true)
      await checkSchema(this.#connection)
      this.#durable = inspection.durable
      this.#opened = true
    } catch (error) {
      await this.#connection.disconnect()
      throw error
    }
  }

  /** Messages that were received for nobody are being returned; this waits for it. */
  async close(): Promise<void> {
    this.#notifications.stop()
    await this.#receives.idle()
    await Promise.all([this.#sends.idle(), this.#settles.idle()])
    await this.#connection.close()
  }

  async send(message: OutgoingMessage, delayMs: number): Promise<void> {
    this.#mustBeOpen()
    const args = [message.id, String(delayMs), pack(message)]
    const answer = await this.#sends.call(args, costOf(message.bytes.length))
    if (answer >= 0) return
    throw new RedriveError(
      'MAILBOX_FULL',
      `${this.name} holds ${this.#options.maxMessages} messages already (maxMessages): receive some, or raise the limit`,
    )
  }

  async receive(ask: ReceiveRequest): Promise<Delivery[]> {
    this.#mustBeOpen()
    const endMs = this.#clock.mono() + ask.waitMs
    for (;;) {
      if (ask.signal.aborted) return []
      const seen = this.#notifications.count
      const { found, dueMs } = await this.#take(ask)
      if (found.length > 0) return found
      // One script could not check all messages.
      if (dueMs === 0) continue
      const leftMs = endMs - this.#clock.mono()
      if (leftMs <= 0) return []
      await this.#notifications.wait(seen, Math.min(leftMs, dueMs), ask.signal)
    }
  }

  acknowledge(receipt: string): Promise<boolean> {
    return this.#settle('a', receipt, 0)
  }

  nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    return this.#settle(how.failed ? 'f' : 'n', receipt, how.delayMs)
  }

  extend(receipt: string, ms: number): Promise<boolean> {
    return this.#settle('e', receipt, ms)
  }

  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    this.#mustBeOpen()
    if (after !== undefined && !/^\d{1,15}$/.test(after))
      throw new RedriveError(
        'INVALID_INPUT',
        `after must be the value that browse returned, got ${JSON.stringify(after)}`,
      )
    const args = [after ?? '0', String(Math.floor(limit))]
    const [last, ...page] = (await this.#connection.run(scripts.browse, args)) as [
      number,
      ...Buffer[],
    ]
    const found = deliveriesIn(page, this.#clock)
    return last < 0 ? { found } : { found, after: String(last) }
  }

  async purge(): Promise<number> {
    this.#mustBeOpen()
    return (await this.#connection.run(scripts.purge, [])) as number
  }

  async count(): Promise<number> {
    this.#mustBeOpen()
    const [messages] = await this.#counts()
    return messages!
  }

  async health(): Promise<MailboxHealth> {
    try {
      this.#mustBeOpen()
      const { checks, dangers } = await inspect(this.#connection)
      const [messages, hidden, strays] = await this.#counts()
      const problems = this.#options.allowVolatile === true ? [] : dangers
      if (strays! > 0)
        problems.push(
          `${strays} messages had lost their bodies and were removed: somebody has changed the keys by hand`,
        )
      const counts = { messages: `${messages}`, hidden: `${hidden}` }
      return { ok: problems.length === 0, checks: { ...checks, ...counts }, problems }
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      return { ok: false, checks: {}, problems: [problem] }
    }
  }

  /** The number of messages, of hidden ones, and of those that ever lost their body. */
  async #counts(): Promise<number[]> {
    return (await this.#connection.run(scripts.count, [])) as number[]
  }

  /** Messages that arrive after the abort are returned to their place. */
  #take(ask: ReceiveRequest): Promise<Taken> {
    const { signal } = ask
    return new Promise((resolve, reject) => {
      const abort = (): void => resolve(nothing)
      signal.addEventListener('abort', abort, { once: true })
      this.#receives
        .call(ask, ask.max)
        .then((taken) => (signal.aborted ? this.#giveBack(taken.found) : resolve(taken)), reject)
        .finally(() => signal.removeEventListener('abort', abort))
    })
  }

  #giveBack(found: readonly Delivery[]): void {
    for (const { receipt } of found)
      // If this fails too, the messages become visible when their receipts lapse.
      this.#settles.call(operationArguments('u', receipt, 0)).catch(() => {})
  }

  #settle(operation: Operation, receipt: string, ms: number): Promise<boolean> {
    return this.#settles.call(operationArguments(operation, receipt, ms))
  }

  async #sendAll(messages: Argument[][]): Promise<number[]> {
    const { maxMessages = '' } = this.#options
    const args: Argument[] = [String(maxMessages), String(this.#retentionMs)]
    for (const message of messages) args.push(...message)
    const [expired, ...answers] = (await this.#connection.run(scripts.send, args)) as number[]
    this.#report(expired!)
    return answers
  }

  async #receiveAll(asks: ReceiveRequest[]): Promise<Taken[]> {
    const live = asks.filter(({ signal }) => !signal.aborted)
    if (live.length === 0) return asks.map(() => nothing)
    const args: string[] = [String(this.#retentionMs)]
    for (const { max, visibilityMs } of live) args.push(String(max), String(visibilityMs))
    const reply = await this.#connection.run(scripts.receive, args)
    const [expired, due, ...rest] = reply as [number, number, ...(number | Buffer)[]]
    this.#report(expired)
    const dueMs = due < 0 ? Infinity : due
    const all = deliveriesIn(rest.slice(live.length) as Buffer[], this.#clock)
    let start = 0
    const taken = live.map((_, at): Taken => {
      return { found: all.slice(start, (start += rest[at] as number)), dueMs }
    })
    if (live.length === asks.length) return taken
    return asks.map((ask) => taken[live.indexOf(ask)] ?? nothing)
  }

  async #settleAll(requests: Argument[][]): Promise<boolean[]> {
    const args: Argument[] = []
    for (const operation of requests) args.push(...operation)
    const answers = (await this.#connection.run(scripts.settle, args)) as number[]
    return answers.map((answer) => answer === 1)
  }

  #mustBeOpen(): void {
    if (!this.#opened)
      throw new RedriveError('CLOSED', `${this.name} is not open: call open() first`)
  }
}

function operationArguments(operation: Operation, receipt: string, ms: number): Argument[] {
  const colon = receipt.indexOf(':')
  const number = receipt.slice(0, colon)
  return [operation, receipt.slice(colon + 1), /^\d{1,16}$/.test(number) ? number : '0', String(ms)]
}

/** Three values of the reply are one message: id, state and packed bytes. */
function deliveriesIn(reply: readonly Buffer[], clock: Clock): Delivery[] {
  const deliveries: Delivery[] = []
  for (let at = 0; at < reply.length; at += 3) {
    const id = reply[at]!.toString()
    const state = reply[at + 1]!
    deliveries.push({
      ...unpack(reply[at + 2]!),
      id,
      receipt: `${state.readDoubleBE(0)}:${id}`,
      deliveries: state.readDoubleBE(8),
      failures: state.readDoubleBE(16),
      firstReceivedMs: Math.floor(state.readDoubleBE(24)) || clock.now(),
      enqueuedMs: state.readDoubleBE(32),
    })
  }
  return deliveries
}

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const controlCharacters = /[\u0000-\u001f\u007f]/

function checkOptions(options: RedisMailboxOptions): void {
  const { name, prefix = '-', waitReplicas = 0, timeoutMs = 1 } = options
  const { maxMessages = 1 } = options
  if (name === '' || name.length > 200 || controlCharacters.test(name))
    throw invalid(`name must have 1 to 200 printable characters, got ${JSON.stringify(name)}`)
  if (prefix === '' || /[{}\s/]/.test(prefix))
    throw invalid(
      `prefix must be a non-empty string without braces, slashes or spaces, got ${JSON.stringify(prefix)}`,
    )
  if (!Number.isInteger(waitReplicas) || waitReplicas < 0)
    throw invalid(`waitReplicas must be an integer of at least 0, got ${waitReplicas}`)
  if (!(timeoutMs > 0)) throw invalid(`timeoutMs must be a number above 0, got ${timeoutMs}`)
  if (!Number.isInteger(maxMessages) || maxMessages < 1)
    throw invalid(`maxMessages must be an integer of at least 1, got ${maxMessages}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}

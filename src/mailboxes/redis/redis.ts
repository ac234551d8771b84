import { systemClock, type Clock } from '../../clock/clock.ts'
import { onAbort } from '../../clock/on-abort.ts'
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
import { addressOf, settingsIn } from '../../backends/redis/address.ts'
import { checkSchema, inspect, refuseDangers } from '../../backends/redis/safety.ts'
import { wireTo, type Argument, type Wire } from '../../backends/redis/connection.ts'
import { mailbox } from '../mailbox.ts'
import { retentionMsOf } from '../../backends/retention.ts'
import { hintsOn, type Hints } from './hints.ts'
import { pack, unpack } from './packing.ts'
import { scripts } from './scripts.ts'
import { tenant } from './tenant.ts'
import { costOf, TimedBatcher } from './timed-batcher.ts'

export interface RedisMailboxOptions {
  name: string
  /**
   * `redis://user:password@host:6379/0`, or `rediss://` over TLS; several hosts, with commas between them, for a cluster.
   * The settings from `prefix` on may also stand in it, behind a question mark.
   */
  url: string
  /** For ids and waiting. When messages lapse and expire goes by the server's clock. */
  clock?: Clock
  resolver?: MailboxResolver
  /** What all keys begin with, before the name. `redrive` unless said. */
  prefix?: string
  /** Messages older than this are removed when the mailbox is received from. Default: 0, they are kept for ever. */
  retentionSeconds?: number
  /** Waiting and hidden messages at the most; more are refused with MAILBOX_FULL. No limit unless said. */
  maxMessages?: number
  /** Opens also on a server that may lose messages. */
  allowVolatile?: boolean
  /** How many replicas must have a message before its sending is acknowledged. None unless said. */
  waitReplicas?: number
  /** How long a call may take. 5 seconds unless said. */
  timeoutMs?: number
}

const optionKeys = keysOf<RedisMailboxOptions>({
  name: true,
  url: true,
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
 * A mailbox in Redis, for any number of processes. Every verb is one script, so it happens whole or not at all. All keys
 * have one hash tag: in a cluster a mailbox lives on one node, and many mailboxes on all of them.
 */
export function redisMailbox(options: RedisMailboxOptions): Mailbox {
  checkKeys('redis mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  const { clock = systemClock, resolver } = options
  const settings = { ...settingsIn(options.url, urlNumbers), ...options }
  const { retentionSeconds = 0 } = settings
  const driver = new RedisMailbox(settings, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** Settings of the URL that are numbers. */
const urlNumbers = ['waitReplicas', 'timeoutMs', 'retentionSeconds', 'maxMessages'] as const

/** How long one connection may take to stand. */
const maxConnectMs = 2000

/** What becomes of a receipt: a acknowledge, f give back as failed, n give back untried, u give back unseen, e extend. */
type Deed = 'a' | 'f' | 'n' | 'u' | 'e'

interface Taken {
  found: Delivery[]
  /** When something may come into sight by itself. */
  dueMs: number
}

const nothing: Taken = { found: [], dueMs: Infinity }

class RedisMailbox implements MailboxDriver {
  readonly name: string
  readonly #options: RedisMailboxOptions
  readonly #clock: Clock
  readonly #retentionMs: number
  readonly #wire: Wire
  readonly #hints: Hints
  readonly #sends: TimedBatcher<Argument[], number>
  readonly #receives: TimedBatcher<ReceiveRequest, Taken>
  readonly #settles: TimedBatcher<Argument[], boolean>
  #opened = false
  #durable: boolean | undefined
  #report: (count: number) => void = () => {}

  constructor(options: RedisMailboxOptions, clock: Clock) {
    checkOptions(options)
    const { name, url, prefix = 'redrive', waitReplicas = 0, timeoutMs = 5000 } = options
    this.name = name
    this.#options = options
    this.#clock = clock
    this.#retentionMs = retentionMsOf(options.retentionSeconds)
    // One of a few words stands behind it, so that no two names lead to the same key, whatever is in them.
    const tag = `{${prefix}/${name}}`
    const address = addressOf(url)
    const connectMs = Math.min(maxConnectMs, timeoutMs)
    this.#wire = wireTo({ tenant, address, tag, waitReplicas, timeoutMs, connectMs })
    this.#hints = hintsOn(this.#wire, `${tag}:wake`, clock)
    // Whoever sends, receives and settles is mostly the same.
    this.#sends = new TimedBatcher(timeoutMs, (parcels) => this.#sendAll(parcels))
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
      const findings = await inspect(this.#wire)
      refuseDangers(findings, this.#wire, this.#options.allowVolatile === true)
      await checkSchema(this.#wire)
      this.#durable = findings.durable
      this.#opened = true
    } catch (error) {
      await this.#wire.disconnect()
      throw error
    }
  }

  /** What was received for nobody is on its way back by now, and gets there. */
  async close(): Promise<void> {
    this.#hints.stop()
    await this.#receives.idle()
    await Promise.all([this.#sends.idle(), this.#settles.idle()])
    await this.#wire.close()
  }

  async send(parcel: OutgoingMessage, delayMs: number): Promise<void> {
    this.#mustBeOpen()
    const args = [parcel.id, String(delayMs), pack(parcel)]
    const answer = await this.#sends.call(args, costOf(parcel.bytes.length))
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
      const seen = this.#hints.count
      const { found, dueMs } = await this.#take(ask)
      if (found.length > 0) return found
      // There is more to go through than one script does.
      if (dueMs === 0) continue
      const leftMs = endMs - this.#clock.mono()
      if (leftMs <= 0) return []
      await this.#hints.wait(seen, Math.min(leftMs, dueMs), ask.signal)
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
      throw new RedriveError('INVALID_INPUT', 'after must be what an earlier page said')
    const args = [after ?? '0', String(Math.floor(limit))]
    const [last, ...page] = (await this.#wire.run(scripts.browse, args)) as [number, ...Buffer[]]
    const found = deliveriesIn(page, this.#clock)
    return last < 0 ? { found } : { found, after: String(last) }
  }

  async purge(): Promise<number> {
    this.#mustBeOpen()
    return (await this.#wire.run(scripts.purge, [])) as number
  }

  async count(): Promise<number> {
    this.#mustBeOpen()
    const [messages] = await this.#counts()
    return messages!
  }

  async health(): Promise<MailboxHealth> {
    try {
      this.#mustBeOpen()
      const { checks, dangers } = await inspect(this.#wire)
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

  /** Messages, hidden ones, and how many have lost their bodies since the beginning. */
  async #counts(): Promise<number[]> {
    return (await this.#wire.run(scripts.count, [])) as number[]
  }

  /** What comes after the abort goes back to where it was. */
  #take(ask: ReceiveRequest): Promise<Taken> {
    const { signal } = ask
    return new Promise((resolve, reject) => {
      const forget = onAbort(signal, () => resolve(nothing))
      this.#receives
        .call(ask, ask.max)
        .then((taken) => (signal.aborted ? this.#giveBack(taken.found) : resolve(taken)), reject)
        .finally(forget)
    })
  }

  #giveBack(found: readonly Delivery[]): void {
    for (const { receipt } of found)
      // When this fails too, they come back when their receipts lapse.
      this.#settles.call(deedOf('u', receipt, 0)).catch(() => {})
  }

  #settle(deed: Deed, receipt: string, ms: number): Promise<boolean> {
    return this.#settles.call(deedOf(deed, receipt, ms))
  }

  async #sendAll(parcels: Argument[][]): Promise<number[]> {
    const { maxMessages = '' } = this.#options
    const args: Argument[] = [String(maxMessages), String(this.#retentionMs)]
    for (const parcel of parcels) args.push(...parcel)
    const [expired, ...answers] = (await this.#wire.run(scripts.send, args)) as number[]
    this.#report(expired!)
    return answers
  }

  async #receiveAll(asks: ReceiveRequest[]): Promise<Taken[]> {
    const live = asks.filter(({ signal }) => !signal.aborted)
    if (live.length === 0) return asks.map(() => nothing)
    const args: string[] = [String(this.#retentionMs)]
    for (const { max, visibilityMs } of live) args.push(String(max), String(visibilityMs))
    const reply = await this.#wire.run(scripts.receive, args)
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
    for (const deed of requests) args.push(...deed)
    const answers = (await this.#wire.run(scripts.settle, args)) as number[]
    return answers.map((answer) => answer === 1)
  }

  #mustBeOpen(): void {
    if (!this.#opened)
      throw new RedriveError('CLOSED', `${this.name} is not open yet: await open() first`)
  }
}

function deedOf(deed: Deed, receipt: string, ms: number): Argument[] {
  const colon = receipt.indexOf(':')
  const number = receipt.slice(0, colon)
  return [deed, receipt.slice(colon + 1), /^\d{1,16}$/.test(number) ? number : '0', String(ms)]
}

/** Three values of the reply are one message: its id, its state and what was sent. */
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
const unfit = /[\u0000-\u001f\u007f]/

function checkOptions(options: RedisMailboxOptions): void {
  const { name, prefix = '-', waitReplicas = 0, timeoutMs = 1 } = options
  const { maxMessages = 1 } = options
  if (name === '' || name.length > 200 || unfit.test(name))
    throw invalid('the name of a mailbox has 1 to 200 printable characters')
  if (prefix === '' || /[{}\s/]/.test(prefix))
    throw invalid('prefix must be a word without braces, slashes or spaces')
  if (!Number.isInteger(waitReplicas) || waitReplicas < 0)
    throw invalid(`waitReplicas must be a whole number from 0 on, not ${waitReplicas}`)
  if (!(timeoutMs > 0)) throw invalid(`timeoutMs must be a number above 0, not ${timeoutMs}`)
  if (!Number.isInteger(maxMessages) || maxMessages < 1)
    throw invalid(`maxMessages must be a whole number from 1 on, not ${maxMessages}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}

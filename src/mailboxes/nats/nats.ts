import { StorageType } from '@nats-io/jetstream'
import type { Msg, NodeConnectionOptions } from '@nats-io/transport-node'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys } from '../../check/keys.ts'
import type {
  ReceiveRequest,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  OutgoingMessage,
} from '../../mailbox.ts'
import { maxVisibilitySeconds } from '../../backends/bounds.ts'
import { mailbox } from '../mailbox.ts'
import { connectionTo, placeOf, settingsIn } from '../../backends/nats/address.ts'
import { consumer, toNaming, type Naming } from './naming.ts'
import {
  bytesOf,
  deliveryOf,
  headersIn,
  headersOf,
  msgIdOf,
  toOutgoingMessage,
  parseReplySubject,
} from '../../backends/nats/packing.ts'
import { checkOptions, optionKeys, type NatsMailboxOptions } from './options.ts'
import { Receipts } from './receipts.ts'
import { ensureConsumer, ensureStream, nanos, problemsOf, defaultVisibilityMs } from './setup.ts'
import { isDeleted } from '../../backends/nats/errors.ts'
import { checkUrlOrClient } from '../../backends/injected-client.ts'
import { checkConnection, JetStreamConnection } from '../../backends/nats/connection.ts'

export type { NatsMailboxOptions } from './options.ts'

/** A mailbox in NATS JetStream: a stream, and one consumer that all processes share. */
export function natsMailbox(options: NatsMailboxOptions): Mailbox {
  checkKeys('nats mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  checkUrlOrClient(options.url, options.client, 'client')
  const settings = { ...settingsIn(options.url ?? ''), ...options }
  const { clock = systemClock, resolver, retentionSeconds = 0 } = settings
  const driver = new NatsMailbox(settings, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** Maximum duration of one pull; a longer wait is several pulls. */
const maxPullMs = 20_000

/** The server counts headers as part of a message; this much is reserved for them. */
const reservedHeaderBytes = 16 * 1024

/** The size of what the client adds to headers. */
const clientHeaderBytes = 64

/** The maximum of the contract. */
const maxDelayMs = maxVisibilitySeconds * 1000

/** How inexact the timers of the server may be before a delayed message counts as early. */
const earlyMs = 1000

class NatsMailbox implements MailboxDriver {
  readonly name: string
  readonly #options: NatsMailboxOptions
  readonly #clock: Clock
  readonly #connection: NodeConnectionOptions = {}
  readonly #naming: Naming
  readonly #receipts: Receipts
  #jetstream: JetStreamConnection | undefined
  #durable = true

  constructor(options: NatsMailboxOptions, clock: Clock) {
    checkOptions(options)
    this.name = options.name
    this.#options = options
    this.#clock = clock
    if (options.client) checkConnection(options.client)
    else this.#connection = { ...connectionTo(options.url ?? ''), ...options.connection }
    this.#naming = toNaming(options.prefix ?? 'redrive', options.name)
    this.#receipts = new Receipts(clock)
  }

  get powers(): MailboxPowers {
    const maxPayload = this.#jetstream?.connection.info?.max_payload ?? 1024 ** 2
    return {
      kind: 'nats',
      durable: this.#durable,
      shared: true,
      visibility: true,
      extend: true,
      delay: true,
      remembers: false,
      // Messages are in the order of sending, but released ones come before waiting ones.
      exactDeliveries: true,
      ordered: false,
      exactCount: true,
      purge: true,
      browse: true,
      deduplicates: true,
      maxBodyBytes: maxPayload - reservedHeaderBytes,
    }
  }

  async open(): Promise<void> {
    const { url = '', client } = this.#options
    const jetstream = client
      ? await JetStreamConnection.use(client, this.#clock)
      : await JetStreamConnection.open(this.#connection, placeOf(url), this.#clock)
    try {
      const stream = await jetstream.call(() =>
        ensureStream(jetstream, this.#naming, this.#options),
      )
      this.#durable = stream.storage === StorageType.File
      await jetstream.call(() => ensureConsumer(jetstream, this.#naming))
      this.#jetstream = jetstream
    } catch (error) {
      await jetstream.close()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#jetstream?.close()
  }

  async send(outgoing: OutgoingMessage, delayMs: number): Promise<void> {
    const jetstream = this.#open()
    const headers = headersOf(outgoing, delayMs)
    const msgID = msgIdOf(outgoing.id)
    this.#checkSize(outgoing, bytesOf(headers) + msgID.length)
    await jetstream.publish(this.#naming.subject, outgoing.bytes, { headers, msgID })
  }

  async receive(ask: ReceiveRequest): Promise<Delivery[]> {
    const jetstream = this.#open()
    const endMs = this.#clock.mono() + ask.waitMs
    let hasDelayed = false
    for (let leftMs = ask.waitMs; ; leftMs = endMs - this.#clock.mono()) {
      if (ask.signal.aborted || (leftMs < 0 && !hasDelayed)) return []
      const got = await this.#pullMessages(jetstream, ask, endMs)
      const found = await this.#hideMessages(jetstream, got, ask.visibilityMs)
      if (found.length > 0) return found
      // Behind delayed messages there may be others.
      hasDelayed = got.length > 0
      if (leftMs <= 0 && !hasDelayed) return []
    }
  }

  async acknowledge(receipt: string): Promise<boolean> {
    return this.#settle(receipt, '+ACK')
  }

  async nack(receipt: string, { delayMs }: { delayMs: number }): Promise<boolean> {
    return this.#settle(receipt, nak(delayMs))
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    if (!this.#receipts.isValid(receipt)) return false
    const untilMs = this.#clock.mono() + ms
    await this.#open().request(receipt, nak(ms))
    if (!this.#receipts.isValid(receipt)) return false
    this.#receipts.hold(receipt, untilMs)
    return true
  }

  /** The server reports which messages were delivered, but not how often: 1 means at least once. */
  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    const { stream, subject } = this.#naming
    const { streams, call } = this.#openConnection()
    if (after !== undefined && !/^\d{1,15}$/.test(after))
      throw new RedriveError('INVALID_INPUT', 'after must be the value of an earlier page')
    const { delivered } = await call(() => streams.consumers.info(stream, consumer))
    const found: Delivery[] = []
    let seq = Number(after ?? 0)
    for (;;) {
      const from = seq + 1
      const query = { seq: from, next_by_subj: subject }
      const stored = await call(() => streams.direct.getMessage(stream, query))
      if (!stored) return { found }
      if (found.length === limit) return { found, after: String(seq) }
      seq = stored.seq
      const outgoing = toOutgoingMessage(
        { data: stored.data, headers: headersIn({ headers: stored.header }) },
        `${stream}:${seq}`,
      )
      const deliveries = seq <= delivered.stream_seq ? 1 + Number(outgoing.delayMs > 0) : 0
      const replySubject = { deliveries, seq, storedMs: stored.time.getTime() }
      found.push(deliveryOf(outgoing, replySubject, '', this.#clock.now()))
    }
  }

  async purge(): Promise<number> {
    const { streams, call } = this.#openConnection()
    const { stream } = this.#naming
    const { purged } = await call(() => streams.streams.purge(stream))
    this.#receipts.clear()
    // Makes the server recount waiting messages, which a purge alone was seen not to do.
    await call(() => streams.consumers.info(stream, consumer))
    return purged
  }

  async count(): Promise<number> {
    const { streams, call } = this.#openConnection()
    const { state } = await call(() => streams.streams.info(this.#naming.stream))
    return state.messages
  }

  async health(): Promise<MailboxHealth> {
    const { streams, call, connection } = this.#openConnection()
    const { stream } = this.#naming
    const { state, config } = await call(() => streams.streams.info(stream))
    const { num_ack_pending: hidden, config: reading } = await call(() =>
      streams.consumers.info(stream, consumer),
    )
    const problems = problemsOf(config, reading)
    const checks = {
      server: connection.info?.version ?? 'unknown',
      stream,
      storage: config.storage,
      replicas: String(config.num_replicas),
      messages: String(state.messages),
      hidden: String(hidden),
    }
    return { ok: problems.length === 0, checks, problems }
  }

  /**
   * Pulls messages. A consumer that somebody has deleted is recreated: all unacknowledged messages
   * are still in the stream, and nobody would receive them.
   */
  async #pullMessages(
    jetstream: JetStreamConnection,
    { max, signal }: ReceiveRequest,
    endMs: number,
  ): Promise<Msg[]> {
    const pull = (): Promise<Msg[]> =>
      jetstream.pull({
        stream: this.#naming.stream,
        consumer,
        max,
        waitMs: Math.max(0, Math.min(Math.ceil(endMs - this.#clock.mono()), maxPullMs)),
        signal,
        stray: (message) => this.#releaseStray(message),
      })
    try {
      return await pull()
    } catch (error) {
      if (!isDeleted(error)) throw error
      await jetstream.call(() => ensureConsumer(jetstream, this.#naming))
      // A signal that has already aborted would not be noticed.
      return signal.aborted ? [] : pull()
    }
  }

  /** Hides the pulled messages for the requested time. Delayed ones are released. */
  async #hideMessages(
    jetstream: JetStreamConnection,
    got: readonly Msg[],
    visibilityMs: number,
  ): Promise<Delivery[]> {
    const nowMs = this.#clock.now()
    const untilMs = this.#clock.mono() + visibilityMs
    const found: Delivery[] = []
    const naks: [receipt: string, nak: string][] = []
    for (const message of got) {
      const receipt = message.reply!
      const replySubject = parseReplySubject(receipt)
      const stored = { data: message.data, headers: headersIn(message) }
      const outgoing = toOutgoingMessage(stored, `${this.#naming.stream}:${replySubject.seq}`)
      const leftMs = outgoing.delayMs > 0 ? replySubject.storedMs + outgoing.delayMs - nowMs : 0
      if (outgoing.delayMs > 0 && (replySubject.deliveries === 1 || leftMs > earlyMs)) {
        // Limited: the server would keep the error of a clock that is far behind for years.
        naks.push([receipt, nak(Math.min(Math.max(0, leftMs), maxDelayMs))])
        continue
      }
      if (visibilityMs !== defaultVisibilityMs) naks.push([receipt, nak(visibilityMs)])
      found.push(deliveryOf(outgoing, replySubject, receipt, nowMs))
    }
    const flush = naks.length === 0 || (await jetstream.publishAll(naks).then(yes, no))
    // The server may not have received a longer time. It then hides them for its default, and the
    // receipts are valid no longer than that.
    const expiresMs = flush
      ? untilMs
      : Math.min(untilMs, untilMs - visibilityMs + defaultVisibilityMs)
    for (const { receipt } of found) this.#receipts.hold(receipt, expiresMs)
    return found
  }

  /** If this fails too, the server redelivers the message after its own time. */
  #releaseStray({ reply }: Msg): void {
    this.#jetstream?.publishAll([[reply!, nak(0)]]).catch(() => {})
  }

  /**
   * The answer confirms that the server has done it. Until then the receipt stays valid, so that an
   * unanswered call can be repeated.
   */
  async #settle(receipt: string, how: string): Promise<boolean> {
    if (!this.#receipts.isValid(receipt)) return false
    await this.#open().request(receipt, how)
    this.#receipts.drop(receipt)
    return true
  }

  #checkSize({ bytes }: OutgoingMessage, headerBytes: number): void {
    const most = this.powers.maxBodyBytes + reservedHeaderBytes
    if (bytes.byteLength + headerBytes + clientHeaderBytes <= most) return
    throw new RedriveError(
      'TOO_LARGE',
      `the body and its headers have ${bytes.byteLength + headerBytes} bytes, the limit of this server is ${most} (max_payload): send a reference to it instead`,
    )
  }

  #openConnection(): Pick<JetStreamConnection, 'streams' | 'connection' | 'call'> {
    const jetstream = this.#open()
    return {
      streams: jetstream.streams,
      connection: jetstream.connection,
      call: (act) => jetstream.call(act),
    }
  }

  #open(): JetStreamConnection {
    if (this.#jetstream) return this.#jetstream
    throw new RedriveError('CLOSED', `${this.name} is not open yet: call and await open() first`)
  }
}

const yes = (): boolean => true
const no = (): boolean => false

function nak(delayMs: number): string {
  return delayMs > 0 ? `-NAK {"delay":${nanos(delayMs)}}` : '-NAK'
}

import { StorageType } from '@nats-io/jetstream'
import type { Msg, NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type {
  Ask,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  OutgoingMessage,
} from '../../mailbox.ts'
import { maxVisibilitySeconds } from '../../backends/bounds.ts'
import { mailbox } from '../mailbox.ts'
import { connectionTo, placeOf, settingsIn } from '../../backends/nats/address.ts'
import { consumer, namingOf, type Naming } from './naming.ts'
import {
  bytesOf,
  deliveryOf,
  headersIn,
  headersOf,
  msgIdOf,
  toOutgoingMessage,
  toldIn,
} from '../../backends/nats/packing.ts'
import { Receipts } from './receipts.ts'
import { ensureConsumer, ensureStream, nanos, problemsOf, usualVisibilityMs } from './setup.ts'
import { isDeleted } from '../../backends/nats/errors.ts'
import {
  checkConnection,
  useConnection,
  wireTo,
  type Wire,
} from '../../backends/nats/connection.ts'
import { checkUrlOrClient } from '../../backends/injected-client.ts'

export interface NatsMailboxOptions {
  name: string
  /**
   * `nats://user:password@host:4222`, `nats://token@host:4222` or `tls://…`; several hosts, with commas between them, for a cluster.
   * The settings from `prefix` on may also stand in it, behind a question mark.
   */
  url?: string
  /** A connection of the application, which stays open when the mailbox closes. Either `url` or `client` is required. */
  client?: NatsConnection
  clock?: Clock
  resolver?: MailboxResolver
  /** More options for the connection to `url`: certificates, an authenticator. */
  connection?: NodeConnectionOptions
  /** What names of streams and subjects begin with: a word. `redrive` unless said. */
  prefix?: string
  /** On how many servers of the cluster each message lies. 1 unless said. Only when the stream is created. */
  replicas?: number
  /** Waiting and hidden messages at the most; more are refused with MAILBOX_FULL. No limit unless said. Only when it is created. */
  maxMessages?: number
  /** How long an id that was sent adds nothing when it is sent again. 120 unless said. Only when the stream is created. */
  dedupeSeconds?: number
  /**
   * Messages older than this are removed when they are received. Default: 0, they are kept for ever. The stream is created without a
   * maximum age of its own.
   */
  retentionSeconds?: number
}

const optionKeys = keysOf<NatsMailboxOptions>({
  name: true,
  url: true,
  client: true,
  clock: true,
  resolver: true,
  connection: true,
  prefix: true,
  replicas: true,
  maxMessages: true,
  dedupeSeconds: true,
  retentionSeconds: true,
})

/** A mailbox in NATS JetStream: a stream, and one consumer that all processes share. */
export function natsMailbox(options: NatsMailboxOptions): Mailbox {
  checkKeys('nats mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  checkUrlOrClient(options.url, options.client, 'client')
  const settings = { ...settingsIn(options.url ?? ''), ...options }
  const { clock = systemClock, resolver, retentionSeconds = 0 } = settings
  const driver = new NatsMailbox(settings, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** How long one pull waits; a longer wait is several pulls. */
const longestPullMs = 20_000

/** Headers count as the server measures a message; so much is kept free for them. */
const roomForHeaders = 16 * 1024

/** What the client writes around headers. */
const clientsHeaders = 64

/** Nobody can ask for more. */
const longestDelayMs = maxVisibilitySeconds * 1000

/** How far the server's timers may be off before a delayed message counts as early. */
const earlyMs = 1000

class NatsMailbox implements MailboxDriver {
  readonly name: string
  readonly #options: NatsMailboxOptions
  readonly #clock: Clock
  readonly #connection: NodeConnectionOptions = {}
  readonly #naming: Naming
  readonly #receipts: Receipts
  #wire: Wire | undefined
  #durable = true

  constructor(options: NatsMailboxOptions, clock: Clock) {
    checkOptions(options)
    this.name = options.name
    this.#options = options
    this.#clock = clock
    if (options.client) checkConnection(options.client)
    else this.#connection = { ...connectionTo(options.url ?? ''), ...options.connection }
    this.#naming = namingOf(options.prefix ?? 'redrive', options.name)
    this.#receipts = new Receipts(clock)
  }

  get powers(): MailboxPowers {
    const maxPayload = this.#wire?.connection.info?.max_payload ?? 1024 ** 2
    return {
      kind: 'nats',
      durable: this.#durable,
      shared: true,
      visibility: true,
      extend: true,
      delay: true,
      remembers: false,
      // The order of sending holds, but what is given back comes before what waits.
      exactDeliveries: true,
      ordered: false,
      exactCount: true,
      purge: true,
      browse: true,
      deduplicates: true,
      maxBodyBytes: maxPayload - roomForHeaders,
    }
  }

  async open(): Promise<void> {
    const { url = '', client } = this.#options
    const wire = client
      ? await useConnection(client, this.#clock)
      : await wireTo(this.#connection, placeOf(url), this.#clock)
    try {
      const stream = await wire.call(() => ensureStream(wire, this.#naming, this.#options))
      this.#durable = stream.storage === StorageType.File
      await wire.call(() => ensureConsumer(wire, this.#naming))
      this.#wire = wire
    } catch (error) {
      await wire.close()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#wire?.close()
  }

  async send(parcel: OutgoingMessage, delayMs: number): Promise<void> {
    const wire = this.#open()
    const headers = headersOf(parcel, delayMs)
    const msgID = msgIdOf(parcel.id)
    this.#mustFit(parcel, bytesOf(headers) + msgID.length)
    await wire.publish(this.#naming.subject, parcel.bytes, { headers, msgID })
  }

  async receive(ask: Ask): Promise<Delivery[]> {
    const wire = this.#open()
    const endMs = this.#clock.mono() + ask.waitMs
    let setAside = false
    for (let leftMs = ask.waitMs; ; leftMs = endMs - this.#clock.mono()) {
      if (ask.signal.aborted || (leftMs < 0 && !setAside)) return []
      const got = await this.#pulled(wire, ask, endMs)
      const found = await this.#taken(wire, got, ask.visibilityMs)
      if (found.length > 0) return found
      // Behind what has to wait there may be something that has not.
      setAside = got.length > 0
      if (leftMs <= 0 && !setAside) return []
    }
  }

  async acknowledge(receipt: string): Promise<boolean> {
    return this.#settle(receipt, '+ACK')
  }

  async nack(receipt: string, { delayMs }: { delayMs: number }): Promise<boolean> {
    return this.#settle(receipt, nak(delayMs))
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    if (!this.#receipts.holds(receipt)) return false
    const untilMs = this.#clock.mono() + ms
    await this.#open().request(receipt, nak(ms))
    if (!this.#receipts.holds(receipt)) return false
    this.#receipts.hold(receipt, untilMs)
    return true
  }

  /** The server says which messages were delivered, but not how often: 1 means at least once. */
  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    const { stream, subject } = this.#naming
    const { streams, call } = this.#bound()
    if (after !== undefined && !/^\d{1,15}$/.test(after))
      throw new RedriveError('INVALID_INPUT', 'after must be what an earlier page said')
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
      const parcel = toOutgoingMessage(
        { data: stored.data, headers: headersIn({ headers: stored.header }) },
        `${stream}:${seq}`,
      )
      const deliveries = seq <= delivered.stream_seq ? 1 + Number(parcel.delayMs > 0) : 0
      const told = { deliveries, seq, storedMs: stored.time.getTime() }
      found.push(deliveryOf(parcel, told, '', this.#clock.now()))
    }
  }

  async purge(): Promise<number> {
    const { streams, call } = this.#bound()
    const { stream } = this.#naming
    const { purged } = await call(() => streams.streams.purge(stream))
    this.#receipts.clear()
    // Makes the server count anew what waits, which a purge alone has been seen not to do.
    await call(() => streams.consumers.info(stream, consumer))
    return purged
  }

  async count(): Promise<number> {
    const { streams, call } = this.#bound()
    const { state } = await call(() => streams.streams.info(this.#naming.stream))
    return state.messages
  }

  async health(): Promise<MailboxHealth> {
    const { streams, call, connection } = this.#bound()
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

  /** A consumer that somebody has deleted is made again: all that was not acknowledged is still in the stream, and nobody would ever get it. */
  async #pulled(wire: Wire, { max, signal }: Ask, endMs: number): Promise<Msg[]> {
    const pull = (): Promise<Msg[]> =>
      wire.pull({
        stream: this.#naming.stream,
        consumer,
        max,
        waitMs: Math.max(0, Math.min(Math.ceil(endMs - this.#clock.mono()), longestPullMs)),
        signal,
        stray: (message) => this.#giveBack(message),
      })
    try {
      return await pull()
    } catch (error) {
      if (!isDeleted(error)) throw error
      await wire.call(() => ensureConsumer(wire, this.#naming))
      // Nobody would hear of a signal that has aborted before.
      return signal.aborted ? [] : pull()
    }
  }

  /** Hides what was pulled for as long as was asked. What is delayed goes back. */
  async #taken(wire: Wire, got: readonly Msg[], visibilityMs: number): Promise<Delivery[]> {
    const nowMs = this.#clock.now()
    const untilMs = this.#clock.mono() + visibilityMs
    const found: Delivery[] = []
    const naks: [receipt: string, nak: string][] = []
    for (const message of got) {
      const receipt = message.reply!
      const told = toldIn(receipt)
      const stored = { data: message.data, headers: headersIn(message) }
      const parcel = toOutgoingMessage(stored, `${this.#naming.stream}:${told.seq}`)
      const leftMs = parcel.delayMs > 0 ? told.storedMs + parcel.delayMs - nowMs : 0
      if (parcel.delayMs > 0 && (told.deliveries === 1 || leftMs > earlyMs)) {
        // The server would remember the mistake of a clock that is far behind for years.
        naks.push([receipt, nak(Math.min(Math.max(0, leftMs), longestDelayMs))])
        continue
      }
      if (visibilityMs !== usualVisibilityMs) naks.push([receipt, nak(visibilityMs)])
      found.push(deliveryOf(parcel, told, receipt, nowMs))
    }
    const heard = naks.length === 0 || (await wire.tell(naks).then(yes, no))
    // The server may not have heard of a longer time. It hides them for its own, and for no longer do the receipts hold.
    const lapsesMs = heard ? untilMs : Math.min(untilMs, untilMs - visibilityMs + usualVisibilityMs)
    for (const { receipt } of found) this.#receipts.hold(receipt, lapsesMs)
    return found
  }

  /** When this fails too, the message comes back when its time with the server is over. */
  #giveBack({ reply }: Msg): void {
    this.#wire?.tell([[reply!, nak(0)]]).catch(() => {})
  }

  /** The answer says that the server has done it. Until then the receipt stays, so that an unanswered call can be made again. */
  async #settle(receipt: string, how: string): Promise<boolean> {
    if (!this.#receipts.holds(receipt)) return false
    await this.#open().request(receipt, how)
    this.#receipts.drop(receipt)
    return true
  }

  #mustFit({ bytes }: OutgoingMessage, headerBytes: number): void {
    const most = this.powers.maxBodyBytes + roomForHeaders
    if (bytes.byteLength + headerBytes + clientsHeaders <= most) return
    throw new RedriveError(
      'TOO_LARGE',
      `the body and its headers have ${bytes.byteLength + headerBytes} bytes, this server takes ${most} (max_payload): send a reference to it instead`,
    )
  }

  #bound(): Pick<Wire, 'streams' | 'connection' | 'call'> {
    const wire = this.#open()
    return { streams: wire.streams, connection: wire.connection, call: (act) => wire.call(act) }
  }

  #open(): Wire {
    if (this.#wire) return this.#wire
    throw new RedriveError('CLOSED', `${this.name} is not open yet: await open() first`)
  }
}

const yes = (): boolean => true
const no = (): boolean => false

function nak(delayMs: number): string {
  return delayMs > 0 ? `-NAK {"delay":${nanos(delayMs)}}` : '-NAK'
}

function checkOptions(options: NatsMailboxOptions): void {
  const { prefix = 'redrive', replicas = 1, maxMessages = 1, dedupeSeconds = 120 } = options
  if (!/^\w{1,32}$/.test(prefix))
    throw invalid('prefix must be a word of letters, digits and _, 32 characters at the most')
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 5)
    throw invalid(`replicas must be a whole number from 1 to 5, not ${replicas}`)
  if (!Number.isInteger(maxMessages) || maxMessages < 1)
    throw invalid(`maxMessages must be a whole number from 1 on, not ${maxMessages}`)
  if (!(dedupeSeconds >= 0.1 && dedupeSeconds <= 86_400))
    throw invalid(`dedupeSeconds must be from 0.1 to 86400, not ${dedupeSeconds}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}

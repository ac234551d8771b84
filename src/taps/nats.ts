import {
  AckPolicy,
  RetentionPolicy,
  StorageType,
  type PubAck,
  type StoredMsg,
} from '@nats-io/jetstream'
import {
  headers as newHeaders,
  type Msg,
  type NodeConnectionOptions,
} from '@nats-io/transport-node'
import { createHash } from 'node:crypto'
import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { toMs, toTimestamp, type Timestamp } from '../letter/time.ts'
import { connectionTo, placeOf } from '../backends/nats/address.ts'
import { parseReplySubject } from '../backends/nats/packing.ts'
import { isDeleted, isMissing, isTaken } from '../backends/nats/errors.ts'
import { JetStreamConnection } from '../backends/nats/connection.ts'
import { lineageOf, onceIdOf, sendTo } from './returned-message.ts'
import { allStored, PollLoop } from './poll-loop.ts'
import type { ForeignLetter, Keep, ReturnedLetter, Tap } from './tap.ts'

export interface NatsTapOptions {
  /** `nats://user:password@host:4222`, as for a mailbox. */
  url: string
  /** The stream whose dead letters are read. */
  stream: string
  /** Reads dead letters of this consumer only. Default: of all consumers of the stream. */
  consumer?: string
  keep: Keep
  clock?: Clock
  connection?: NodeConnectionOptions
  /** Deletes the message from its stream after its letter is stored. Default: false. */
  remove?: boolean
  /** Called with each error. Reading continues and retries by itself. */
  onError?: (error: unknown) => void
}

/**
 * Reads messages that consumers of a stream gave up on: after `max_deliver` deliveries, or because
 * a consumer ended a message with TERM. The server reports each of these once, to current
 * subscribers; a stream of our own subscribes, so that no report is missed after the first start.
 */
export function natsTap(options: NatsTapOptions): Tap {
  return new NatsTap(options)
}

/** All taps of an account share this stream. Reports that no tap reads are not stored in it. */
const advisories = 'redrive-dead-letters'
const events = ['MAX_DELIVERIES', 'MSG_TERMINATED'].map(
  (event) => `$JS.EVENT.ADVISORY.CONSUMER.${event}`,
)

/** A consumer of the stream of advisories. Older servers allow one filter per consumer. */
interface Subscription {
  filter: string
  durable: string
}

/** Storing a letter takes less than this; otherwise the server delivers it a second time. */
const ackWaitMs = 60_000
const pollMs = 20_000
/**
 * Redelivery delays after the first and the second failure to store a letter. The server redelivers
 * before it delivers new messages.
 */
const againMs = [1000, 30_000] as const
const longestAgainMs = 15 * 60_000

interface Advisory {
  stream: string
  consumer: string
  seq: number
  deliveries: number
  /** Set if the consumer ended the message with TERM, absent after too many deliveries. */
  terminated?: { reason: string }
  at?: Timestamp
}

class NatsTap implements Tap {
  readonly #options: NatsTapOptions
  readonly #clock: Clock
  readonly #subscriptions: readonly Subscription[]
  #starting: Promise<JetStreamConnection> | undefined
  #loops: readonly PollLoop[] | undefined
  #stopped = false

  constructor(options: NatsTapOptions) {
    const { stream, consumer = '*', clock = systemClock } = options
    if (!/^[^\s.*>]+$/.test(stream) || !/^(\*|[^\s.*>]+)$/.test(consumer))
      throw new RedriveError(
        'INVALID_INPUT',
        'names of NATS streams and consumers must not contain spaces, dots, * or >',
      )
    this.#options = options
    this.#clock = clock
    this.#subscriptions = events.map((event) => {
      const filter = `${event}.${stream}.${consumer}`
      const hash = createHash('sha256').update(filter).digest('hex').slice(0, 12)
      return { filter, durable: `${stream.slice(0, 100)}-${hash}` }
    })
  }

  async start(): Promise<void> {
    this.#starting ??= this.#connect().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    })
    const jetstream = await this.#starting
    if (this.#stopped) return
    this.#loops ??= this.#subscriptions.map(
      (subscription) =>
        new PollLoop(
          this.#clock,
          (signal) => this.#turn(jetstream, subscription, signal),
          this.#options.onError,
        ),
    )
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all((this.#loops ?? []).map((one) => one.stop()))
    const jetstream = await this.#starting?.catch(() => undefined)
    await jetstream?.close()
  }

  /**
   * Publishes to the original subject: all subscribers of that subject receive the message again.
   */
  async returnToSource(letter: ReturnedLetter, generation: number): Promise<void> {
    const to = letter.origin['subject']
    if (to === undefined)
      throw new RedriveError('INVALID_INPUT', 'the origin of this letter has no subject')
    const jetstream = await this.#connected()
    const headers = newHeaders()
    const lists = listsIn(letter.origin['lists'])
    for (const [name, value] of Object.entries(letter.headers))
      for (const one of valuesOf(lists, name, value)) headers.append(name, one)
    for (const [name, value] of Object.entries(lineageOf(letter, generation)))
      headers.set(name, value)
    const publish = (msgID: string): Promise<PubAck> =>
      sendTo(`the subject ${to}`, () => jetstream.publish(to, letter.body, { headers, msgID }))
    const { msgId } = letter.origin
    // Within its duplicate window the stream takes the message for a duplicate of itself and does
    // not store it.
    if (msgId !== undefined && !(await publish(msgId)).duplicate) return
    await publish(onceIdOf(letter, generation))
  }

  async #connect(): Promise<JetStreamConnection> {
    const { url, connection, stream } = this.#options
    const jetstream = await JetStreamConnection.open(
      { ...connectionTo(url), ...connection },
      placeOf(url),
      this.#clock,
    )
    try {
      await jetstream.call(() => jetstream.streams.streams.info(stream))
      await jetstream.call(() => this.#listen(jetstream))
      return jetstream
    } catch (error) {
      await jetstream.close()
      throw error
    }
  }

  async #listen({ streams: { streams, consumers } }: JetStreamConnection): Promise<void> {
    try {
      await streams.add({
        name: advisories,
        subjects: events.map((event) => `${event}.>`),
        retention: RetentionPolicy.Interest,
        storage: StorageType.File,
      })
    } catch (error) {
      if (!isTaken(error)) throw error
      // An earlier version subscribed to fewer subjects.
      await streams.update(advisories, { subjects: events.map((event) => `${event}.>`) })
    }
    for (const { durable, filter } of this.#subscriptions)
      try {
        await consumers.info(advisories, durable)
      } catch (error) {
        if (!isMissing(error)) throw error
        await consumers.add(advisories, {
          durable_name: durable,
          filter_subject: filter,
          ack_policy: AckPolicy.Explicit,
          ack_wait: ackWaitMs * 1e6,
          max_deliver: -1,
        })
      }
  }

  async #turn(
    jetstream: JetStreamConnection,
    subscription: Subscription,
    signal: AbortSignal,
  ): Promise<void> {
    const got = await this.#pullMessages(jetstream, subscription, signal)
    const carrying = got.map((message) => this.#carry(jetstream, message))
    await allStored(carrying, this.#options.onError)
  }

  /**
   * If somebody has deleted the stream or consumer of advisories, recreates it at once, so that as
   * few dead letters as possible are missed, and reports the error.
   */
  async #pullMessages(
    jetstream: JetStreamConnection,
    { durable }: Subscription,
    signal: AbortSignal,
  ): Promise<Msg[]> {
    try {
      return await jetstream.pull({
        stream: advisories,
        consumer: durable,
        max: 10,
        waitMs: pollMs,
        signal,
        stray: ({ reply }) => void jetstream.publishAll([[reply!, '-NAK']]).catch(() => {}),
      })
    } catch (error) {
      if (isDeleted(error)) await jetstream.call(() => this.#listen(jetstream))
      throw error
    }
  }

  /**
   * Acknowledges only after the letter is stored, and deletes the message only after that: if the
   * advisory were delivered again, there would be nothing to read.
   */
  async #carry(jetstream: JetStreamConnection, message: Msg): Promise<void> {
    const advisory = advisoryIn(message)
    try {
      if (advisory) await this.#keep(jetstream, advisory)
    } catch (error) {
      const delayMs = againMs[parseReplySubject(message.reply!).deliveries - 1] ?? longestAgainMs
      await jetstream.request(message.reply!, `-NAK {"delay":${delayMs * 1e6}}`).catch(() => {})
      throw error
    }
    await jetstream.request(message.reply!, '+ACK')
    if (advisory && this.#options.remove) await this.#remove(jetstream, advisory)
  }

  async #keep(jetstream: JetStreamConnection, advisory: Advisory): Promise<void> {
    const { stream, seq } = advisory
    const stored = await jetstream.call(() => jetstream.streams.streams.getMessage(stream, { seq }))
    await this.#options.keep(foreignOf(advisory, stored))
  }

  /** Somebody else may have acknowledged or deleted the message. */
  async #remove(jetstream: JetStreamConnection, { stream, seq }: Advisory): Promise<void> {
    await jetstream
      .call(() => jetstream.streams.streams.deleteMessage(stream, seq, false))
      .catch(() => {})
  }

  #connected(): Promise<JetStreamConnection> {
    if (this.#starting) return this.#starting
    throw new RedriveError('CLOSED', 'the tap is not started: call and await start() first')
  }
}

/** Undefined if the message is not an advisory. */
function advisoryIn(message: Msg): Advisory | undefined {
  try {
    const said = message.json<Record<string, unknown>>()
    const { type, stream, consumer, stream_seq: seq, deliveries, reason, timestamp } = said
    if (typeof stream !== 'string' || typeof consumer !== 'string') return undefined
    if (typeof seq !== 'number' || typeof deliveries !== 'number') return undefined
    const atMs = toMs(String(timestamp))
    const at = Number.isNaN(atMs) ? {} : { at: toTimestamp(atMs) }
    const terminated = String(type).endsWith('.terminated')
      ? { terminated: { reason: typeof reason === 'string' ? reason : '' } }
      : {}
    return { stream, consumer, seq, deliveries, ...terminated, ...at }
  } catch {
    return undefined
  }
}

/**
 * If the message was deleted or expired before it could be read, the letter has an empty body and
 * says so.
 */
function foreignOf(advisory: Advisory, stored: StoredMsg | null): ForeignLetter {
  const { stream, consumer, seq, deliveries, at } = advisory
  const headers = headersOf(stored)
  const lostError = stored ? '' : '; the message was no longer in the stream'
  return {
    source: `${stream}/${consumer}`,
    reason: `${reasonOf(advisory)}${lostError}`,
    deliveries,
    ...(stored ? { enqueuedAt: toTimestamp(stored.time.getTime()) } : {}),
    ...(at === undefined ? {} : { failedAt: at, death: at }),
    body: stored?.data ?? new Uint8Array(),
    contentType: headers['Content-Type'] ?? 'application/octet-stream',
    headers,
    messageId: `${stream}:${seq}`,
    origin: {
      stream,
      consumer,
      seq: String(seq),
      ...(stored ? { subject: stored.subject, ...oddHeaders(stored) } : {}),
    },
  }
}

function reasonOf({ deliveries, terminated }: Advisory): string {
  if (!terminated) return `given up after ${deliveries} deliveries (max_deliver)`
  const { reason } = terminated
  return `ended by its consumer at delivery ${deliveries} (TERM)${reason === '' ? '' : `: ${reason}`}`
}

/**
 * Headers that a record of strings cannot hold: several values of one name, and the id by which the
 * server detects duplicates.
 */
function oddHeaders(stored: StoredMsg): { lists?: string; msgId?: string } {
  try {
    const found = stored.header
    const lists = found
      .keys()
      .filter((name) => !/^nats-/i.test(name) && found.values(name).length > 1)
      .map((name) => [name, found.values(name)] as const)
    const msgId = found.get('Nats-Msg-Id')
    return {
      ...(lists.length > 0 ? { lists: JSON.stringify(lists) } : {}),
      ...(msgId === '' ? {} : { msgId }),
    }
  } catch {
    return {}
  }
}

function listsIn(json: string | undefined): Map<string, readonly string[]> {
  try {
    return new Map(JSON.parse(json ?? '[]') as [string, string[]][])
  } catch {
    return new Map()
  }
}

/** The original values of a header, or the one value that somebody has edited it to. */
function valuesOf(
  lists: ReadonlyMap<string, readonly string[]>,
  name: string,
  value: string,
): readonly string[] {
  const values = lists.get(name)
  return values && values.join(', ') === value ? values : [value]
}

/** The headers without those of the server. Empty if the client cannot parse them. */
function headersOf(stored: StoredMsg | null): Record<string, string> {
  try {
    const found = stored?.header
    const names = found?.keys().filter((name) => !/^nats-/i.test(name)) ?? []
    return Object.fromEntries(names.map((name) => [name, found!.values(name).join(', ')]))
  } catch {
    return {}
  }
}

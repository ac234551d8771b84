import type { Message, Options } from 'amqplib'
import { RedriveError } from '../../errors.ts'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import { formatValue, fromJson, toJson } from './field-values.ts'
import { delayPrefix } from './names.ts'
import { latestMs } from '../../letter/time.ts'

/** The state of a message that survives from one delivery to the next. */
export interface DeliveryState {
  enqueuedMs: number
  /** Absent if it was never delivered. */
  firstReceivedMs?: number
  /** Deliveries of earlier copies: a released message is published again. */
  deliveries: number
  failures: number
}

/** The header for what AMQP has no field for, as JSON. */
const stateHeader = 'x-redrive'

interface StateHeader extends DeliveryState {
  id?: string
  contentType?: string
  replyTo?: string
  /** Headers whose names have a meaning for the server, or are too long. */
  headers?: Record<string, string>
  /** True if the message is not ours, so that all its headers are its own. */
  foreign?: boolean
}

/** The client encodes headers into 64 KiB, and silently truncates the rest. */
const maxHeaderBytes = 60_000
/** A message that was sent must have room for the state of its copies. */
const maxCopyBytes = 65_000

/** The limit of short strings in AMQP. */
const isShort = (text: string): boolean => Buffer.byteLength(text) <= 255

/** False for names that the server acts upon, or sets itself. */
const isPlainHeader = (name: string): boolean =>
  !/^(x-|b?cc$)/i.test(name) && name !== '__proto__' && isShort(name)

/** False for names that would make the server expect a direct reply consumer. */
const isPlainReplyTo = (name: string): boolean => isShort(name) && !name.startsWith('amq.')

/** Converts an outgoing message to AMQP. Rejects headers above the limit with TOO_LARGE. */
export function toPublishOptions(
  outgoing: OutgoingMessage,
  memory: DeliveryState,
): Options.Publish {
  const { id, contentType, replyTo } = outgoing
  const note: StateHeader = { ...memory }
  const publishing: Options.Publish = {
    persistent: true,
    timestamp: Math.floor(memory.enqueuedMs / 1000),
  }
  if (isShort(id)) publishing.messageId = id
  else note.id = id
  if (isShort(contentType)) publishing.contentType = contentType
  else note.contentType = contentType
  if (replyTo !== undefined && isPlainReplyTo(replyTo)) publishing.replyTo = replyTo
  else if (replyTo !== undefined) note.replyTo = replyTo
  const odd = Object.entries(outgoing.headers).filter(([name]) => !isPlainHeader(name))
  if (odd.length > 0) note.headers = Object.fromEntries(odd)
  const plain = Object.entries(outgoing.headers).filter(([name]) => isPlainHeader(name))
  publishing.headers = checkHeaderSize({
    ...Object.fromEntries(plain),
    [stateHeader]: JSON.stringify(note),
  })
  return publishing
}

/** Headers for publishing again: integers have the width that most clients use. */
function typedHeaders(headers: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, fromJson(toJson(value))]),
  )
}

/**
 * How a delivery ended. `untried` does not count as a delivery; `lapsed` (the lease expired)
 * counts, but not as a failure.
 */
export type Ending = 'failed' | 'untried' | 'lapsed'

/**
 * Builds a copy of a message, with its updated state, that replaces the message. Other properties
 * are unchanged.
 */
export function toCopy(message: Message, delivery: Delivery, ending: Ending): Options.Publish {
  const { properties } = message
  const { id, enqueuedMs, firstReceivedMs } = delivery
  const deliveries = delivery.deliveries - Number(ending === 'untried')
  const failures = delivery.failures + Number(ending === 'failed')
  const memory = { enqueuedMs, firstReceivedMs, deliveries, failures }
  const note: StateHeader = { ...readState(message), ...memory }
  if (readState(message) === undefined) note.foreign = true
  if (properties.messageId !== id) note.id = id
  const { contentType, contentEncoding, correlationId, replyTo, priority } = properties
  const { messageId, timestamp, type, appId } = properties
  // Without the user id, which the server would compare with ours, and without the time to live,
  // which would expire the message.
  return {
    persistent: true,
    ...omitNullish({ contentType, contentEncoding, correlationId, replyTo, priority }),
    ...omitNullish({ messageId, timestamp, type, appId }),
    headers: checkHeaderSize(
      { ...typedHeaders(permanentHeaders(message)), [stateHeader]: JSON.stringify(note) },
      maxCopyBytes,
    ),
  }
}

/** Converts a message of any sender to a delivery. */
export function deliveryOf(
  message: Message,
  about: { receipt: string; nowMs: number; freshId: () => string },
): Delivery {
  const { properties, content, fields } = message
  const note = readState(message)
  // Queues that do not count deliveries still mark redeliveries.
  const redeliveries = Math.max(fields.redelivered ? 1 : 0, ...counts(message))
  const delivery: Delivery = {
    id: note?.id ?? nonEmptyString(properties.messageId) ?? about.freshId(),
    // Copied, since the message itself may be published again.
    bytes: Buffer.from(content),
    contentType:
      note?.contentType ?? nonEmptyString(properties.contentType) ?? 'application/octet-stream',
    headers: readHeaders(message, note),
    receipt: about.receipt,
    deliveries: (note?.deliveries ?? 0) + redeliveries + 1,
    failures: note?.failures ?? 0,
    enqueuedMs: note?.enqueuedMs ?? timestampToMs(properties.timestamp) ?? about.nowMs,
    firstReceivedMs: note?.firstReceivedMs ?? about.nowMs,
  }
  const replyTo = note?.replyTo ?? nonEmptyString(properties.replyTo)
  if (replyTo !== undefined) delivery.replyTo = replyTo
  return delivery
}

/** Headers that count requeues. Newer servers count some of them separately. */
const counting = ['x-delivery-count', 'x-acquired-count']

function counts(message: Message): number[] {
  return counting.map((name) => headersOf(message)[name]).filter(isCount)
}

/** Headers as strings: of our own messages those that were sent, of others all. */
function readHeaders(message: Message, note: StateHeader | undefined): Record<string, string> {
  const isForeign = note === undefined || note.foreign === true
  const readable = Object.entries(permanentHeaders(message))
    .filter(([name]) => isForeign || isPlainHeader(name))
    .map(([name, value]) => [name, formatValue(value)] as const)
  const { contentEncoding, correlationId, type } = message.properties
  const properties = {
    'content-encoding': nonEmptyString(contentEncoding),
    'correlation-id': nonEmptyString(correlationId),
    type: nonEmptyString(type),
  }
  return Object.fromEntries([
    ...Object.entries(omitNullish(properties)),
    ...readable,
    ...oddHeaders(note),
  ])
}

/** Without the headers that we and the server add at each delivery and after each delay. */
function permanentHeaders(message: Message): Record<string, unknown> {
  const lasting = Object.entries(headersOf(message)).flatMap(([name, value]) => {
    if (name === stateHeader || counting.includes(name)) return []
    if (name === 'x-death') {
      const deaths = Array.isArray(value)
        ? value.filter((death) => !isOurDelay(death?.queue))
        : value
      return Array.isArray(deaths) && deaths.length === 0 ? [] : [[name, deaths] as const]
    }
    const turn = /^x-(first|last)-death-/.exec(name)?.[1]
    const isOurs = turn !== undefined && isOurDelay(headersOf(message)[`x-${turn}-death-queue`])
    return isOurs ? [] : [[name, value] as const]
  })
  return Object.fromEntries(lasting)
}

const isOurDelay = (queue: unknown): boolean =>
  typeof queue === 'string' && queue.startsWith(delayPrefix)

const oddHeaders = (note: StateHeader | undefined): [string, string][] =>
  Object.entries(note?.headers ?? {})

export function headersOf(message: Message): Record<string, unknown> {
  return message.properties.headers ?? {}
}

/** Parses our header if it is valid. Anybody may send anything. */
function readState(message: Message): StateHeader | undefined {
  const text = headersOf(message)[stateHeader]
  if (typeof text !== 'string') return undefined
  try {
    const note = JSON.parse(text) as Record<string, unknown>
    const { id, contentType, replyTo, headers = {}, firstReceivedMs = 0 } = note
    const strings = [id, contentType, replyTo].filter((one) => one !== undefined)
    const numbers = [note['enqueuedMs'], note['deliveries'], note['failures'], firstReceivedMs]
    if (!strings.every((one) => typeof one === 'string') || !numbers.every(isCount))
      return undefined
    if (typeof headers !== 'object' || headers === null) return undefined
    const isWhole = Object.values(headers).every((one) => typeof one === 'string')
    return isWhole ? (note as unknown as StateHeader) : undefined
  } catch {
    return undefined
  }
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0

const nonEmptyString = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/**
 * Converts a timestamp: seconds by the protocol, though many senders use milliseconds. Undefined
 * for anything else, such as nanoseconds.
 */
export function timestampToMs(timestamp: unknown): number | undefined {
  if (typeof timestamp !== 'number' || !(timestamp > 0 && timestamp <= latestMs)) return undefined
  return timestamp > 1e11 ? timestamp : timestamp * 1000
}

/** Without null and undefined values. */
function omitNullish<T extends object>(of: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const there = Object.entries(of).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(there) as { [K in keyof T]?: NonNullable<T[K]> }
}

/** Returns the headers if they are below the size limit. */
export function checkHeaderSize(
  headers: Record<string, unknown>,
  most: number = maxHeaderBytes,
): Record<string, unknown> {
  const bytes = bytesOf(headers)
  if (bytes <= most) return headers
  throw new RedriveError(
    'TOO_LARGE',
    `the headers have ${bytes} bytes, the limit of rabbitmq is ${most}: shorten them`,
  )
}

/** Upper bound of the encoded size of a header value. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return 5 + Buffer.byteLength(value)
  if (Buffer.isBuffer(value)) return 5 + value.length
  if (typeof value !== 'object' || value === null) return 9
  const isList = Array.isArray(value)
  let bytes = 5
  for (const [name, one] of Object.entries(value))
    bytes += (isList ? 0 : 1 + Buffer.byteLength(name)) + bytesOf(one)
  return bytes
}

import type { Message, Options } from 'amqplib'
import { RedriveError } from '../../errors.ts'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import { formatValue, fromJson, toJson } from './field-values.ts'
import { delayPrefix } from './names.ts'
import { latestMs } from '../../letter/time.ts'

/** What is remembered of a message from one delivery to the next. */
export interface Memory {
  enqueuedMs: number
  /** Absent: it was never delivered. */
  firstReceivedMs?: number
  /** Those of earlier copies: a message that is given back is sent anew. */
  deliveries: number
  failures: number
}

/** The header with all that AMQP has no place for, as JSON. */
const noteHeader = 'x-redrive'

interface Note extends Memory {
  id?: string
  contentType?: string
  replyTo?: string
  /** Those whose names mean something to the server, or do not fit. */
  headers?: Record<string, string>
  /** It was not sent by us, so all its headers are its own. */
  foreign?: boolean
}

/** The client writes headers into 64 KiB, and what does not fit it cuts off without a word. */
const maxHeaderBytes = 60_000
/** What was sent must be fit to be given back, with all that its copy has to remember. */
const maxCopyBytes = 65_000

/** AMQP's short texts. */
const isShort = (text: string): boolean => Buffer.byteLength(text) <= 255

/** Names by which the server would do something, or that it sets itself. */
const isPlainHeader = (name: string): boolean =>
  !/^(x-|b?cc$)/i.test(name) && name !== '__proto__' && isShort(name)

/** This name would have the server expect us to wait for a reply. */
const isPlainReplyTo = (name: string): boolean => isShort(name) && !name.startsWith('amq.')

/** A parcel as AMQP has it. TOO_LARGE when its headers are more than the wire takes. */
export function publishingOf(parcel: OutgoingMessage, memory: Memory): Options.Publish {
  const { id, contentType, replyTo } = parcel
  const note: Note = { ...memory }
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
  const odd = Object.entries(parcel.headers).filter(([name]) => !isPlainHeader(name))
  if (odd.length > 0) note.headers = Object.fromEntries(odd)
  const plain = Object.entries(parcel.headers).filter(([name]) => isPlainHeader(name))
  publishing.headers = fitting({ ...Object.fromEntries(plain), [noteHeader]: JSON.stringify(note) })
  return publishing
}

/** Headers as they are sent again: with the width of integers that most clients use. */
function typedHeaders(headers: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, fromJson(toJson(value))]),
  )
}

/** How a delivery ended: what was not tried does not count as one, and what lapsed counts, but not as a failure. */
export type Ending = 'failed' | 'untried' | 'lapsed'

/** A copy of a message, to be sent in its place, that remembers. Others' properties stay as they were. */
export function copyOf(message: Message, delivery: Delivery, ending: Ending): Options.Publish {
  const { properties } = message
  const { id, enqueuedMs, firstReceivedMs } = delivery
  const deliveries = delivery.deliveries - Number(ending === 'untried')
  const failures = delivery.failures + Number(ending === 'failed')
  const memory = { enqueuedMs, firstReceivedMs, deliveries, failures }
  const note: Note = { ...noteIn(message), ...memory }
  if (noteIn(message) === undefined) note.foreign = true
  if (properties.messageId !== id) note.id = id
  const { contentType, contentEncoding, correlationId, replyTo, priority } = properties
  const { messageId, timestamp, type, appId } = properties
  // Left out are a user, whom the server would compare with ours, and a time to live, which would end the message.
  return {
    persistent: true,
    ...known({ contentType, contentEncoding, correlationId, replyTo, priority }),
    ...known({ messageId, timestamp, type, appId }),
    headers: fitting(
      { ...typedHeaders(lastingHeaders(message)), [noteHeader]: JSON.stringify(note) },
      maxCopyBytes,
    ),
  }
}

/** A message as it is delivered, whoever sent it. */
export function deliveryOf(
  message: Message,
  about: { receipt: string; nowMs: number; freshId: () => string },
): Delivery {
  const { properties, content, fields } = message
  const note = noteIn(message)
  // Queues that do not count still say that a message comes again.
  const redeliveries = Math.max(fields.redelivered ? 1 : 0, ...counts(message))
  const delivery: Delivery = {
    id: note?.id ?? textOf(properties.messageId) ?? about.freshId(),
    // A copy: the message itself may have to be sent again.
    bytes: Buffer.from(content),
    contentType: note?.contentType ?? textOf(properties.contentType) ?? 'application/octet-stream',
    headers: toldHeaders(message, note),
    receipt: about.receipt,
    deliveries: (note?.deliveries ?? 0) + redeliveries + 1,
    failures: note?.failures ?? 0,
    enqueuedMs: note?.enqueuedMs ?? msOf(properties.timestamp) ?? about.nowMs,
    firstReceivedMs: note?.firstReceivedMs ?? about.nowMs,
  }
  const replyTo = note?.replyTo ?? textOf(properties.replyTo)
  if (replyTo !== undefined) delivery.replyTo = replyTo
  return delivery
}

/** How often a message was given back. Newer servers count some of it apart. */
const counting = ['x-delivery-count', 'x-acquired-count']

function counts(message: Message): number[] {
  return counting.map((name) => headersOf(message)[name]).filter(isCount)
}

/** Headers as text: of our own messages those that were sent, of others' all there is. */
function toldHeaders(message: Message, note: Note | undefined): Record<string, string> {
  const isForeign = note === undefined || note.foreign === true
  const told = Object.entries(lastingHeaders(message))
    .filter(([name]) => isForeign || isPlainHeader(name))
    .map(([name, value]) => [name, formatValue(value)] as const)
  const { contentEncoding, correlationId, type } = message.properties
  const properties = {
    'content-encoding': textOf(contentEncoding),
    'correlation-id': textOf(correlationId),
    type: textOf(type),
  }
  return Object.fromEntries([...Object.entries(known(properties)), ...told, ...oddOnes(note)])
}

/** Without what we and the server add at each delivery, and each time a message has waited for its delay. */
function lastingHeaders(message: Message): Record<string, unknown> {
  const lasting = Object.entries(headersOf(message)).flatMap(([name, value]) => {
    if (name === noteHeader || counting.includes(name)) return []
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

const oddOnes = (note: Note | undefined): [string, string][] => Object.entries(note?.headers ?? {})

export function headersOf(message: Message): Record<string, unknown> {
  return message.properties.headers ?? {}
}

/** What we noted in a message, if it is whole. Anybody may send anything. */
function noteIn(message: Message): Note | undefined {
  const text = headersOf(message)[noteHeader]
  if (typeof text !== 'string') return undefined
  try {
    const note = JSON.parse(text) as Record<string, unknown>
    const { id, contentType, replyTo, headers = {}, firstReceivedMs = 0 } = note
    const texts = [id, contentType, replyTo].filter((one) => one !== undefined)
    const numbers = [note['enqueuedMs'], note['deliveries'], note['failures'], firstReceivedMs]
    if (!texts.every((one) => typeof one === 'string') || !numbers.every(isCount)) return undefined
    if (typeof headers !== 'object' || headers === null) return undefined
    const isWhole = Object.values(headers).every((one) => typeof one === 'string')
    return isWhole ? (note as unknown as Note) : undefined
  } catch {
    return undefined
  }
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Seconds by the protocol; many send milliseconds. Absent: it is no moment, as where somebody counts in nanoseconds. */
export function msOf(timestamp: unknown): number | undefined {
  if (typeof timestamp !== 'number' || !(timestamp > 0 && timestamp <= latestMs)) return undefined
  return timestamp > 1e11 ? timestamp : timestamp * 1000
}

/** Without what is not there. */
function known<T extends object>(of: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const there = Object.entries(of).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(there) as { [K in keyof T]?: NonNullable<T[K]> }
}

/** The headers, if they can be sent. */
export function fitting(
  headers: Record<string, unknown>,
  most: number = maxHeaderBytes,
): Record<string, unknown> {
  const bytes = bytesOf(headers)
  if (bytes <= most) return headers
  throw new RedriveError(
    'TOO_LARGE',
    `the headers have ${bytes} bytes, rabbitmq takes ${most}: put less into them`,
  )
}

/** What a value of a header takes on the wire at the most. */
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

import { latestMs } from '../../letter/time.ts'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import type { NewRecord, StoredRecord } from './record.ts'

/** The header of our messages: properties that a Kafka record has no field for, as JSON. */
const ownHeader = 'redrive'
const ownHeaderBytes = Buffer.from(ownHeader)

/** Properties that a copy of a message keeps. */
export interface MessageState {
  deliveries: number
  failures: number
  enqueuedMs: number
  firstReceivedMs?: number
  /** Earliest delivery in wall time. 0: no delay. */
  notBeforeMs: number
}

interface OwnProperties extends Partial<MessageState> {
  id: string
  type: string
  replyTo?: string
  /** The value of a header of the sender that has the name of our header. */
  same?: string
}

export type MailboxMessage = OutgoingMessage & MessageState

export function encodeMessage(message: OutgoingMessage, notBeforeMs: number): NewRecord {
  const own: OwnProperties = { id: message.id, type: message.contentType }
  if (message.replyTo !== undefined) own.replyTo = message.replyTo
  if (notBeforeMs > 0) own.notBeforeMs = notBeforeMs
  const headers = new Map<Buffer, Buffer>()
  for (const [name, value] of Object.entries(message.headers)) {
    if (name === ownHeader) own.same = value
    else headers.set(Buffer.from(name), Buffer.from(value))
  }
  headers.set(ownHeaderBytes, Buffer.from(JSON.stringify(own)))
  const { buffer, byteOffset, byteLength } = message.bytes
  return { value: Buffer.from(buffer, byteOffset, byteLength), headers }
}

/** A copy of a record with another state. Its key and its other headers stay the same. */
export function copyRecord(
  record: StoredRecord,
  message: MailboxMessage,
  state: MessageState,
): NewRecord {
  const own: OwnProperties = { id: message.id, type: message.contentType, ...state }
  if (message.replyTo !== undefined) own.replyTo = message.replyTo
  const same = message.headers[ownHeader]
  if (same !== undefined) own.same = same
  const headers = new Map<Buffer, Buffer | null>()
  for (const [name, value] of record.headers)
    if (!ownHeaderBytes.equals(name)) headers.set(name, value)
  headers.set(ownHeaderBytes, Buffer.from(JSON.stringify(own)))
  const { key } = record
  const value = record.isNull ? null : record.value
  return key ? { value, headers, key } : { value, headers }
}

/** Reads a record of any producer. One without our header gets its position as id. */
export function decodeMessage(record: StoredRecord): MailboxMessage {
  const own = readOwnProperties(record)
  const pairs = readHeaders(record, own !== undefined)
  if (own?.same !== undefined) pairs.push([ownHeader, own.same])
  const headers = Object.fromEntries(pairs)
  const message: MailboxMessage = {
    id: own?.id ?? `${record.topic}:${record.partition}:${record.offset}`,
    bytes: record.value,
    contentType: own?.type ?? headers['content-type'] ?? 'application/octet-stream',
    headers,
    deliveries: own?.deliveries ?? 0,
    failures: own?.failures ?? 0,
    // Some producers write nanoseconds. A later timestamp would make our header of a copy invalid.
    enqueuedMs: own?.enqueuedMs ?? Math.min(record.timestampMs, latestMs),
    notBeforeMs: own?.notBeforeMs ?? 0,
  }
  if (own?.replyTo !== undefined) message.replyTo = own.replyTo
  if (own?.firstReceivedMs !== undefined) message.firstReceivedMs = own.firstReceivedMs
  return message
}

/** Copies bytes and headers, because the receiver can change them. */
export function toDelivery(
  message: MailboxMessage,
  {
    receipt,
    deliveries,
    firstReceivedMs,
  }: Pick<Delivery, 'receipt' | 'deliveries' | 'firstReceivedMs'>,
): Delivery {
  const { id, bytes, contentType, headers, failures, enqueuedMs, replyTo } = message
  const delivery: Delivery = {
    id,
    bytes: Buffer.from(bytes),
    contentType,
    headers: { ...headers },
    receipt,
    deliveries,
    failures,
    enqueuedMs,
    firstReceivedMs,
  }
  if (replyTo !== undefined) delivery.replyTo = replyTo
  return delivery
}

/** The headers as strings, without a valid header of ours. Values of one name are joined. */
function readHeaders({ headers }: StoredRecord, hasOwn: boolean): [name: string, value: string][] {
  const values = new Map<string, string>()
  for (const [name, bytes] of headers) {
    if (hasOwn && ownHeaderBytes.equals(name)) continue
    const key = name.toString()
    const value = bytes?.toString() ?? ''
    const former = values.get(key)
    values.set(key, former === undefined ? value : `${former}, ${value}`)
  }
  return [...values]
}

function readOwnProperties({ headers }: StoredRecord): OwnProperties | undefined {
  const [own, ...more] = headers.filter(([name]) => ownHeaderBytes.equals(name))
  if (!own || more.length > 0) return undefined
  try {
    const properties: unknown = JSON.parse(own[1]?.toString() ?? '')
    return isOwnProperties(properties) ? properties : undefined
  } catch {
    return undefined
  }
}

function isOwnProperties(value: unknown): value is OwnProperties {
  if (typeof value !== 'object' || value === null) return false
  const own = value as Record<keyof OwnProperties, unknown>
  return (
    typeof own.id === 'string' &&
    typeof own.type === 'string' &&
    [own.replyTo, own.same].every(isOptionalString) &&
    [own.deliveries, own.failures].every(isOptionalCount) &&
    [own.enqueuedMs, own.firstReceivedMs, own.notBeforeMs].every(isOptionalCount)
  )
}

const isOptionalString = (value: unknown): boolean =>
  value === undefined || typeof value === 'string'

/** Counts and timestamps: both are integers up to the latest timestamp. */
const isOptionalCount = (value: unknown): boolean =>
  value === undefined ||
  (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= latestMs)

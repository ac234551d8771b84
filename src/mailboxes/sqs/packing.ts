import type { Message, MessageAttributeValue } from '@aws-sdk/client-sqs'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import { ascii } from '../../backends/ascii.ts'

/** The attribute that only our messages have. SQS takes ten of them; all that there is to say stands in this one, as JSON. */
const ours = 'Redrive'

interface Meta {
  id: string
  type: string
  replyTo?: string
  headers?: Record<string, string>
  /** The body stands in base64, behind a word that says so; SQS takes no empty body. */
  base64?: true
}

export interface Packed {
  body: string
  attributes: Record<string, MessageAttributeValue>
  /** As SQS counts: body, and names, types and values of attributes. */
  bytes: number
}

const inBase64 = 'base64,'

/** What SQS takes in a body. AWS also takes characters beyond 16 bits, but not every server that speaks like it does. */
const unfit = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function pack(parcel: OutgoingMessage): Packed {
  const meta: Meta = { id: parcel.id, type: parcel.contentType }
  if (parcel.replyTo !== undefined) meta.replyTo = parcel.replyTo
  if (Object.keys(parcel.headers).length > 0) meta.headers = parcel.headers
  const text = textOf(parcel.bytes)
  if (text === undefined) meta.base64 = true
  const body = text ?? inBase64 + Buffer.from(parcel.bytes).toString('base64')
  const told = ascii(JSON.stringify(meta))
  const bytes = text === undefined ? body.length : parcel.bytes.byteLength
  return {
    body,
    attributes: { [ours]: { DataType: 'String', StringValue: told } },
    bytes: bytes + told.length + ours.length + 'String'.length,
  }
}

/** A message of anybody. What SQS does not say counts as now. */
export function unpack(message: Message, nowMs: number): Delivery {
  const { MessageId, ReceiptHandle = '', Body = '', Attributes = {} } = message
  const attributes = message.MessageAttributes ?? {}
  const deliveries = Math.max(1, Math.trunc(numberOf(Attributes.ApproximateReceiveCount, 1)))
  const counts = {
    receipt: ReceiptHandle,
    deliveries,
    failures: deliveries - 1,
    enqueuedMs: numberOf(Attributes.SentTimestamp, nowMs),
    firstReceivedMs: numberOf(Attributes.ApproximateFirstReceiveTimestamp, nowMs),
  }
  const meta = metaIn(attributes[ours]?.StringValue)
  if (!meta) {
    const { 'Content-Type': said, ...headers } = textsIn(attributes)
    return {
      id: MessageId ?? ReceiptHandle.slice(0, 200),
      bytes: Buffer.from(Body),
      contentType: said ?? 'text/plain; charset=utf-8',
      headers,
      ...counts,
    }
  }
  const parcel: OutgoingMessage = {
    id: meta.id,
    bytes: meta.base64 ? Buffer.from(Body.slice(inBase64.length), 'base64') : Buffer.from(Body),
    contentType: meta.type,
    headers: { ...meta.headers },
  }
  if (meta.replyTo !== undefined) parcel.replyTo = meta.replyTo
  return { ...parcel, ...counts }
}

/** Undefined: it is no text, or none that SQS would take. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.byteLength === 0) return undefined
  try {
    const text = strict.decode(bytes)
    return unfit.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

function textsIn(attributes: Record<string, MessageAttributeValue>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, { StringValue }]) =>
      StringValue === undefined ? [] : [[name, StringValue]],
    ),
  )
}

function numberOf(text: string | undefined, otherwise: number): number {
  const number = Number(text)
  return text === undefined || !Number.isFinite(number) ? otherwise : number
}

function metaIn(text: string | undefined): Meta | undefined {
  if (text === undefined) return undefined
  try {
    const meta: unknown = JSON.parse(text)
    return isMeta(meta) ? meta : undefined
  } catch {
    return undefined
  }
}

function isMeta(value: unknown): value is Meta {
  if (typeof value !== 'object' || value === null) return false
  const { id, type, replyTo, headers = {} } = value as Record<string, unknown>
  return (
    typeof id === 'string' &&
    typeof type === 'string' &&
    (replyTo === undefined || typeof replyTo === 'string') &&
    typeof headers === 'object' &&
    headers !== null &&
    Object.values(headers).every((one) => typeof one === 'string')
  )
}

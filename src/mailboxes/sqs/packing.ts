import type { Message, MessageAttributeValue } from '@aws-sdk/client-sqs'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import { ascii } from '../../backends/ascii.ts'
import { isStringRecord, parseMeta, type MessageMeta } from '../../backends/message-meta.ts'

/**
 * The attribute of our own messages. SQS allows ten attributes; this one contains everything, as
 * JSON.
 */
const metaAttribute = 'Redrive'

interface Meta extends MessageMeta {
  headers?: Record<string, string>
  /** The body is in base64 after a prefix; SQS allows no empty body. */
  base64?: true
}

export interface Packed {
  body: string
  attributes: Record<string, MessageAttributeValue>
  /** As SQS counts: the body, and names, types and values of attributes. */
  bytes: number
}

const inBase64 = 'base64,'

/**
 * Characters that SQS does not allow in a body. AWS also allows characters beyond 16 bits, but not
 * every compatible server does.
 */
const disallowed = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function pack(outgoing: OutgoingMessage): Packed {
  const meta: Meta = { id: outgoing.id, type: outgoing.contentType }
  if (outgoing.replyTo !== undefined) meta.replyTo = outgoing.replyTo
  if (Object.keys(outgoing.headers).length > 0) meta.headers = outgoing.headers
  const text = toAllowedText(outgoing.bytes)
  if (text === undefined) meta.base64 = true
  const body = text ?? inBase64 + Buffer.from(outgoing.bytes).toString('base64')
  const metaJson = ascii(JSON.stringify(meta))
  const bytes = text === undefined ? body.length : outgoing.bytes.byteLength
  return {
    body,
    attributes: { [metaAttribute]: { DataType: 'String', StringValue: metaJson } },
    bytes: bytes + metaJson.length + metaAttribute.length + 'String'.length,
  }
}

/** Reads a message of any sender. Missing timestamps count as now. */
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
  const meta = parseMeta<Meta>(attributes[metaAttribute]?.StringValue, ({ headers = {} }) =>
    isStringRecord(headers),
  )
  if (!meta) {
    const { 'Content-Type': contentType, ...headers } = stringAttributes(attributes)
    return {
      id: MessageId ?? ReceiptHandle.slice(0, 200),
      bytes: Buffer.from(Body),
      contentType: contentType ?? 'text/plain; charset=utf-8',
      headers,
      ...counts,
    }
  }
  const outgoing: OutgoingMessage = {
    id: meta.id,
    bytes: meta.base64 ? Buffer.from(Body.slice(inBase64.length), 'base64') : Buffer.from(Body),
    contentType: meta.type,
    headers: { ...meta.headers },
  }
  if (meta.replyTo !== undefined) outgoing.replyTo = meta.replyTo
  return { ...outgoing, ...counts }
}

/** Undefined if the bytes are not text that SQS allows. */
function toAllowedText(bytes: Uint8Array): string | undefined {
  if (bytes.byteLength === 0) return undefined
  try {
    const text = strict.decode(bytes)
    return disallowed.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

function stringAttributes(
  attributes: Record<string, MessageAttributeValue>,
): Record<string, string> {
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

import { headers as newHeaders, type Msg, type MsgHdrs } from '@nats-io/transport-node'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import { ascii } from '../ascii.ts'
import { maxVisibilitySeconds } from '../bounds.ts'
import { isStringRecord, parseMeta, type MessageMeta } from '../message-meta.ts'

/** The header of our own messages: what NATS has no field for, as JSON. */
const metaHeader = 'Redrive'

interface Meta extends MessageMeta {
  delayMs?: number
  /** Headers that the protocol would change. */
  odd?: Record<string, string>
}

/** Parts of the reply subject of a delivery. */
export interface ReplySubject {
  deliveries: number
  seq: number
  storedMs: number
}

/** A message as stored in the stream. */
export interface Stored {
  data: Uint8Array
  headers: MsgHdrs | undefined
}

/**
 * Names and values that the protocol leaves unchanged, except those reserved for the server and for
 * us.
 */
const plainName = /^(?!nats-|redrive)[A-Za-z0-9_-]{1,100}$/i
const plainValue = /^[\u0021-\u007e]([\u0020-\u007e]*[\u0021-\u007e])?$/

export function headersOf(outgoing: OutgoingMessage, delayMs: number): MsgHdrs {
  const written = newHeaders()
  const meta: Meta = { id: outgoing.id, type: outgoing.contentType }
  if (outgoing.replyTo !== undefined) meta.replyTo = outgoing.replyTo
  if (delayMs > 0) meta.delayMs = delayMs
  const odd = Object.entries(outgoing.headers).filter(([name, value]) => {
    if (!plainName.test(name) || !plainValue.test(value)) return true
    written.append(name, value)
    return false
  })
  if (odd.length > 0) meta.odd = Object.fromEntries(odd)
  written.set(metaHeader, ascii(JSON.stringify(meta)))
  return written
}

/** The size of our headers in the protocol, where each character is one byte. */
export function bytesOf(headers: MsgHdrs): number {
  let bytes = 0
  for (const [name, values] of headers)
    for (const value of values) bytes += name.length + value.length + 4
  return bytes
}

/** The id in the form that the server compares: it trims ids and compares bytes. */
export function msgIdOf(id: string): string {
  return encodeURIComponent(id)
}

/** Reads a message of any sender. Without an id, it gets `fallbackId`. */
export function toOutgoingMessage(
  { data, headers }: Stored,
  fallbackId: string,
): OutgoingMessage & Delay {
  const plain = plainHeaders(headers)
  const meta = parseMeta<Meta>(headers?.get(metaHeader), isNatsMeta)
  if (!meta)
    return {
      id: foreignId(headers) ?? fallbackId,
      bytes: data,
      contentType: headers?.get('Content-Type') || 'application/octet-stream',
      headers: plain,
      delayMs: 0,
    }
  const { id, type, replyTo, odd, delayMs = 0 } = meta
  const all = odd ? Object.fromEntries([...Object.entries(plain), ...Object.entries(odd)]) : plain
  const outgoing = { id, bytes: data, contentType: type, headers: all, delayMs }
  return replyTo === undefined ? outgoing : { ...outgoing, replyTo }
}

export interface Delay {
  delayMs: number
}

/** The first delivery of a delayed message only starts its delay, and does not count. */
export function deliveryOf(
  outgoing: OutgoingMessage & Delay,
  replySubject: ReplySubject,
  receipt: string,
  nowMs: number,
): Delivery {
  const { delayMs, ...rest } = outgoing
  const deliveries =
    delayMs > 0 ? Math.max(0, replySubject.deliveries - 1) : replySubject.deliveries
  return {
    ...rest,
    receipt,
    deliveries,
    failures: Math.max(0, deliveries - 1),
    enqueuedMs: replySubject.storedMs,
    firstReceivedMs: nowMs,
  }
}

/**
 * Parses `$JS.ACK.stream.consumer.deliveries.sequence.…time.pending`. Newer servers put a domain
 * and an account before the stream.
 */
export function parseReplySubject(reply: string): ReplySubject {
  const parts = reply.split('.')
  const at = parts.length >= 11 ? 6 : 4
  const [deliveries = '', seq = '', , nanos = ''] = parts.slice(at)
  return { deliveries: Number(deliveries), seq: Number(seq), storedMs: Number(nanos.slice(0, -6)) }
}

/** False for a status message of the server about a request. */
export function isDelivery(message: Msg): boolean {
  return message.reply !== undefined && message.reply.startsWith('$JS.ACK.')
}

/** The client parses headers lazily, and they may be invalid. */
export function headersIn(message: Pick<Msg, 'headers'>): MsgHdrs | undefined {
  try {
    return message.headers
  } catch {
    return undefined
  }
}

function plainHeaders(headers: MsgHdrs | undefined): Record<string, string> {
  if (!headers) return {}
  const names = headers.keys().filter((name) => name !== metaHeader && !/^nats-/i.test(name))
  return Object.fromEntries(names.map((name) => [name, headers.values(name).join(', ')]))
}

function foreignId(headers: MsgHdrs | undefined): string | undefined {
  const id = headers?.get('Nats-Msg-Id') ?? ''
  return id !== '' && id.length <= 200 ? id : undefined
}

function isNatsMeta({ delayMs, odd }: Record<string, unknown>): boolean {
  return (delayMs === undefined || isDelay(delayMs)) && (odd === undefined || isStringRecord(odd))
}

/** Anybody may write the header: a value that our mailboxes would reject was not written by one. */
function isDelay(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxVisibilitySeconds * 1000
}

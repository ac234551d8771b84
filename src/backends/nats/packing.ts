import { headers as newHeaders, type Msg, type MsgHdrs } from '@nats-io/transport-node'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import { ascii } from '../ascii.ts'
import { maxVisibilitySeconds } from '../bounds.ts'

/** The header that only our messages have: what NATS has no place for, as JSON. */
const ours = 'Redrive'

interface Meta {
  id: string
  type: string
  replyTo?: string
  delayMs?: number
  /** Headers that a wire of lines and tokens would change. */
  odd?: Record<string, string>
}

/** Parts of the subject to which a delivery is answered. */
export interface Told {
  deliveries: number
  seq: number
  storedMs: number
}

/** A message as it lies in the stream. */
export interface Stored {
  data: Uint8Array
  headers: MsgHdrs | undefined
}

/** Tokens that stay as they are, and are not the server's own or ours. */
const plainName = /^(?!nats-|redrive)[A-Za-z0-9_-]{1,100}$/i
const plainValue = /^[\u0021-\u007e]([\u0020-\u007e]*[\u0021-\u007e])?$/

export function headersOf(parcel: OutgoingMessage, delayMs: number): MsgHdrs {
  const written = newHeaders()
  const meta: Meta = { id: parcel.id, type: parcel.contentType }
  if (parcel.replyTo !== undefined) meta.replyTo = parcel.replyTo
  if (delayMs > 0) meta.delayMs = delayMs
  const odd = Object.entries(parcel.headers).filter(([name, value]) => {
    if (!plainName.test(name) || !plainValue.test(value)) return true
    written.append(name, value)
    return false
  })
  if (odd.length > 0) meta.odd = Object.fromEntries(odd)
  written.set(ours, ascii(JSON.stringify(meta)))
  return written
}

/** How large headers of ours are on the wire, where each character is a byte. */
export function bytesOf(headers: MsgHdrs): number {
  let bytes = 0
  for (const [name, values] of headers)
    for (const value of values) bytes += name.length + value.length + 4
  return bytes
}

/** The id as the server compares it, which trims and knows bytes alone. */
export function msgIdOf(id: string): string {
  return encodeURIComponent(id)
}

/** A message of anybody, with an id of the stream's making when it has none. */
export function toOutgoingMessage(
  { data, headers }: Stored,
  fallbackId: string,
): OutgoingMessage & Delay {
  const plain = plainHeaders(headers)
  const meta = metaIn(headers)
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
  const parcel = { id, bytes: data, contentType: type, headers: all, delayMs }
  return replyTo === undefined ? parcel : { ...parcel, replyTo }
}

export interface Delay {
  delayMs: number
}

/** A delayed message is set aside at its first delivery, which then does not count. */
export function deliveryOf(
  parcel: OutgoingMessage & Delay,
  told: Told,
  receipt: string,
  nowMs: number,
): Delivery {
  const { delayMs, ...rest } = parcel
  const deliveries = delayMs > 0 ? Math.max(0, told.deliveries - 1) : told.deliveries
  return {
    ...rest,
    receipt,
    deliveries,
    failures: Math.max(0, deliveries - 1),
    enqueuedMs: told.storedMs,
    firstReceivedMs: nowMs,
  }
}

/** `$JS.ACK.stream.consumer.deliveries.sequence.…time.pending`, with a domain and an account before the stream in newer servers. */
export function toldIn(reply: string): Told {
  const parts = reply.split('.')
  const at = parts.length >= 11 ? 6 : 4
  const [deliveries = '', seq = '', , nanos = ''] = parts.slice(at)
  return { deliveries: Number(deliveries), seq: Number(seq), storedMs: Number(nanos.slice(0, -6)) }
}

/** False for what the server says about a request rather than delivers. */
export function isDelivery(message: Msg): boolean {
  return message.reply !== undefined && message.reply.startsWith('$JS.ACK.')
}

/** Headers of messages are read late by the client, and may be anything. */
export function headersIn(message: Pick<Msg, 'headers'>): MsgHdrs | undefined {
  try {
    return message.headers
  } catch {
    return undefined
  }
}

function plainHeaders(headers: MsgHdrs | undefined): Record<string, string> {
  if (!headers) return {}
  const names = headers.keys().filter((name) => name !== ours && !/^nats-/i.test(name))
  return Object.fromEntries(names.map((name) => [name, headers.values(name).join(', ')]))
}

function foreignId(headers: MsgHdrs | undefined): string | undefined {
  const id = headers?.get('Nats-Msg-Id') ?? ''
  return id !== '' && id.length <= 200 ? id : undefined
}

function metaIn(headers: MsgHdrs | undefined): Meta | undefined {
  const text = headers?.get(ours) ?? ''
  if (text === '') return undefined
  try {
    const meta: unknown = JSON.parse(text)
    return isMeta(meta) ? meta : undefined
  } catch {
    return undefined
  }
}

function isMeta(value: unknown): value is Meta {
  if (typeof value !== 'object' || value === null) return false
  const { id, type, replyTo, delayMs, odd } = value as Record<string, unknown>
  return (
    typeof id === 'string' &&
    typeof type === 'string' &&
    (replyTo === undefined || typeof replyTo === 'string') &&
    (delayMs === undefined || isDelay(delayMs)) &&
    (odd === undefined || isTexts(odd))
  )
}

/** Anybody may write the header: what no mailbox of ours would take was not written by one. */
function isDelay(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxVisibilitySeconds * 1000
}

function isTexts(value: unknown): value is Record<string, string> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((one) => typeof one === 'string')
  )
}

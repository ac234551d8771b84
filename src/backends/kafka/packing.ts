import type { Stored, Written } from './record.ts'
import type { Delivery, OutgoingMessage } from '../../mailbox.ts'
import { latestMs } from '../../letter/time.ts'

/** The header that only our messages have: what Kafka has no place for, as JSON. */
const ours = 'redrive'
const oursBytes = Buffer.from(ours)

/** What a message remembers from one copy to the next. */
export interface Memory {
  deliveries: number
  failures: number
  enqueuedMs: number
  firstReceivedMs?: number
  /** Not to be delivered before, by the clock on the wall. 0: at once. */
  notBeforeMs: number
}

interface Meta extends Partial<Memory> {
  id: string
  type: string
  replyTo?: string
  /** The header of a sender that is called like ours. */
  same?: string
}

export type Opened = OutgoingMessage & Memory

export function writtenOf(parcel: OutgoingMessage, notBeforeMs: number): Written {
  const meta: Meta = { id: parcel.id, type: parcel.contentType }
  if (parcel.replyTo !== undefined) meta.replyTo = parcel.replyTo
  if (notBeforeMs > 0) meta.notBeforeMs = notBeforeMs
  const headers = new Map<Buffer, Buffer>()
  for (const [name, value] of Object.entries(parcel.headers)) {
    if (name === ours) meta.same = value
    else headers.set(Buffer.from(name), Buffer.from(value))
  }
  headers.set(oursBytes, Buffer.from(JSON.stringify(meta)))
  const { buffer, byteOffset, byteLength } = parcel.bytes
  return { value: Buffer.from(buffer, byteOffset, byteLength), headers }
}

/** The same record once more, with what it should remember. Its key and all other headers stay as they are. */
export function copyOf(stored: Stored, opened: Opened, memory: Memory): Written {
  const meta: Meta = { id: opened.id, type: opened.contentType, ...memory }
  if (opened.replyTo !== undefined) meta.replyTo = opened.replyTo
  const same = opened.headers[ours]
  if (same !== undefined) meta.same = same
  const headers = new Map<Buffer, Buffer | null>()
  for (const [name, value] of stored.headers) if (!oursBytes.equals(name)) headers.set(name, value)
  headers.set(oursBytes, Buffer.from(JSON.stringify(meta)))
  const { key } = stored
  const value = stored.isNull ? null : stored.value
  return key ? { value, headers, key } : { value, headers }
}

/** A message of anybody. One that is not ours is known by its place. */
export function openedOf(stored: Stored): Opened {
  const meta = metaIn(stored)
  const texts = textsIn(stored, meta !== undefined)
  if (meta?.same !== undefined) texts.push([ours, meta.same])
  const headers = Object.fromEntries(texts)
  const opened: Opened = {
    id: meta?.id ?? `${stored.topic}:${stored.partition}:${stored.offset}`,
    bytes: stored.value,
    contentType: meta?.type ?? headers['content-type'] ?? 'application/octet-stream',
    headers,
    deliveries: meta?.deliveries ?? 0,
    failures: meta?.failures ?? 0,
    // Some count in nanoseconds. A copy that says what is no moment would not be known as ours, and would have forgotten everything.
    enqueuedMs: meta?.enqueuedMs ?? Math.min(stored.timestampMs, latestMs),
    notBeforeMs: meta?.notBeforeMs ?? 0,
  }
  if (meta?.replyTo !== undefined) opened.replyTo = meta.replyTo
  if (meta?.firstReceivedMs !== undefined) opened.firstReceivedMs = meta.firstReceivedMs
  return opened
}

/** The receiver has bytes and headers of its own. */
export function deliveryOf(
  opened: Opened,
  told: { receipt: string; deliveries: number; firstReceivedMs: number },
): Delivery {
  const { id, bytes, contentType, headers, failures, enqueuedMs, replyTo } = opened
  const { receipt, deliveries, firstReceivedMs } = told
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

/** All but ours, if it is ours. Mostly there are none. */
function textsIn({ headers }: Stored, hasOurs: boolean): [name: string, value: string][] {
  const others = hasOurs ? headers.filter(([name]) => !oursBytes.equals(name)) : headers
  if (others.length === 0) return []
  const texts = new Map<string, string>()
  for (const [name, value] of others) {
    const key = name.toString()
    const text = value?.toString() ?? ''
    const before = texts.get(key)
    texts.set(key, before === undefined ? text : `${before}, ${text}`)
  }
  return [...texts]
}

function metaIn({ headers }: Stored): Meta | undefined {
  const [own, ...more] = headers.filter(([name]) => oursBytes.equals(name))
  if (!own || more.length > 0) return undefined
  try {
    const meta: unknown = JSON.parse(own[1]?.toString() ?? '')
    return isMeta(meta) ? meta : undefined
  } catch {
    return undefined
  }
}

function isMeta(value: unknown): value is Meta {
  if (typeof value !== 'object' || value === null) return false
  const meta = value as Record<keyof Meta, unknown>
  return (
    typeof meta.id === 'string' &&
    typeof meta.type === 'string' &&
    isTextIfAny(meta.replyTo) &&
    isTextIfAny(meta.same) &&
    isCountIfAny(meta.deliveries) &&
    isCountIfAny(meta.failures) &&
    isCountIfAny(meta.enqueuedMs) &&
    isCountIfAny(meta.firstReceivedMs) &&
    isCountIfAny(meta.notBeforeMs)
  )
}

const isTextIfAny = (value: unknown): boolean => value === undefined || typeof value === 'string'

/** Moments too: no date is later than this. */
const isCountIfAny = (value: unknown): boolean =>
  value === undefined ||
  (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= latestMs)

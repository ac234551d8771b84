import type { Stored, Written } from '../../kafka/record.ts'
import type { Delivery, Parcel } from '../../mailbox.ts'

/** The header that only our messages have: what Kafka has no place for, as JSON. */
const ours = 'redrive'

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

export type Opened = Parcel & Memory

export function writtenOf(parcel: Parcel, notBeforeMs: number): Written {
  const meta: Meta = { id: parcel.id, type: parcel.contentType }
  if (parcel.replyTo !== undefined) meta.replyTo = parcel.replyTo
  if (notBeforeMs > 0) meta.notBeforeMs = notBeforeMs
  const headers = new Map<Buffer, Buffer>()
  for (const [name, value] of Object.entries(parcel.headers)) {
    if (name === ours) meta.same = value
    else headers.set(Buffer.from(name), Buffer.from(value))
  }
  headers.set(Buffer.from(ours), Buffer.from(JSON.stringify(meta)))
  return { value: asBuffer(parcel.bytes), headers }
}

/** The same record once more, with what it should remember. Its key and all other headers stay as they are. */
export function copyOf(stored: Stored, opened: Opened, memory: Memory): Written {
  const meta: Meta = { id: opened.id, type: opened.contentType, ...memory }
  if (opened.replyTo !== undefined) meta.replyTo = opened.replyTo
  const same = opened.headers[ours]
  if (same !== undefined) meta.same = same
  const headers = new Map<Buffer, Buffer>()
  for (const [name, value] of stored.headers)
    if (name.toString() !== ours) headers.set(Buffer.from(name), Buffer.from(value))
  headers.set(Buffer.from(ours), Buffer.from(JSON.stringify(meta)))
  const written = { value: Buffer.from(stored.value), headers }
  return stored.key ? { ...written, key: Buffer.from(stored.key) } : written
}

/** A message of anybody. One that is not ours is known by its place. */
export function openedOf(stored: Stored): Opened {
  const texts = textsIn(stored)
  const meta = metaIn(texts)
  texts.delete(ours)
  if (meta?.same !== undefined) texts.set(ours, meta.same)
  const parcel: Parcel = {
    id: meta?.id ?? `${stored.topic}:${stored.partition}:${stored.offset}`,
    bytes: stored.value,
    contentType: meta?.type ?? texts.get('content-type') ?? 'application/octet-stream',
    headers: Object.fromEntries(texts),
  }
  if (meta?.replyTo !== undefined) parcel.replyTo = meta.replyTo
  const memory: Memory = {
    deliveries: meta?.deliveries ?? 0,
    failures: meta?.failures ?? 0,
    enqueuedMs: meta?.enqueuedMs ?? stored.timestampMs,
    notBeforeMs: meta?.notBeforeMs ?? 0,
  }
  if (meta?.firstReceivedMs !== undefined) memory.firstReceivedMs = meta.firstReceivedMs
  return { ...parcel, ...memory }
}

/** The receiver has bytes and headers of its own. */
export function deliveryOf(
  opened: Opened,
  told: { receipt: string; deliveries: number; firstReceivedMs: number },
): Delivery {
  const { notBeforeMs: _, ...rest } = opened
  return { ...rest, ...told, bytes: Uint8Array.from(opened.bytes), headers: { ...opened.headers } }
}

function textsIn({ headers }: Stored): Map<string, string> {
  const texts = new Map<string, string>()
  for (const [name, value] of headers) {
    const key = name.toString()
    const before = texts.get(key)
    texts.set(key, before === undefined ? value.toString() : `${before}, ${value.toString()}`)
  }
  return texts
}

function metaIn(texts: ReadonlyMap<string, string>): Meta | undefined {
  try {
    const meta: unknown = JSON.parse(texts.get(ours) ?? '')
    return isMeta(meta) ? meta : undefined
  } catch {
    return undefined
  }
}

function isMeta(value: unknown): value is Meta {
  if (typeof value !== 'object' || value === null) return false
  const { id, type, replyTo, same, ...memory } = value as Record<string, unknown>
  return (
    typeof id === 'string' &&
    typeof type === 'string' &&
    isTextIfAny(replyTo) &&
    isTextIfAny(same) &&
    isCountIfAny(memory['deliveries']) &&
    isCountIfAny(memory['failures']) &&
    isCountIfAny(memory['enqueuedMs']) &&
    isCountIfAny(memory['firstReceivedMs']) &&
    isCountIfAny(memory['notBeforeMs'])
  )
}

const isTextIfAny = (value: unknown): boolean => value === undefined || typeof value === 'string'

/** Moments too: no date is later than this. */
const isCountIfAny = (value: unknown): boolean =>
  value === undefined || (typeof value === 'number' && value >= 0 && value <= 8.64e15)

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes)
}

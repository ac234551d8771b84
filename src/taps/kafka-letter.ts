import { toTimestamp } from '../letter/time.ts'
import type { Stored, Tombstone, Written } from '../kafka/record.ts'
import { lineage } from '../letter/lineage.ts'
import { lineageOf } from './homeward.ts'
import type { ForeignLetter, SentBack } from './tap.ts'

/** Where a record was before it died, and what killed it, as far as somebody wrote that into its headers. */
interface Death {
  topic?: string
  partition?: string
  offset?: string
  timestamp?: string
  /** Who gave it up: a consumer group, or a connector. */
  by?: string
  /** The class of what was thrown. */
  error?: string
  message?: string
  stack?: string
}

const spring = 'kafka_dlt-'
const connect = '__connect.errors.'

/** Headers of these are about its death, and do not go back with it. */
const ofDeath = [spring, connect, 'kafka_deliveryAttempt', lineage.replays, lineage.originalId]

/** Java writes these as big-endian numbers, of four bytes or eight. */
const numbers = new Set([
  `${spring}original-partition`,
  `${spring}original-offset`,
  `${spring}original-timestamp`,
  'kafka_deliveryAttempt',
])

/** A record of a dead letter topic as a letter. One that nobody wrote anything on is a letter too, but does not know its way home. */
export function foreignLetterOf(stored: Stored): ForeignLetter {
  const headers = textsOf(stored)
  const death = { ...deathByConnect(headers), ...deathBySpring(headers) }
  const { topic, error, message, by, timestamp = '' } = death
  const why = [error, message].filter((part) => part !== undefined && part !== '').join(': ')
  const sentMs = /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : undefined
  return {
    source: topic ?? stored.topic,
    reason: why === '' ? 'nobody wrote on it why' : why,
    ...(error === undefined ? {} : { error: thrownIn(death, error) }),
    deliveries: Math.max(1, Number(headers['kafka_deliveryAttempt'] ?? 1) || 1),
    ...(sentMs === undefined ? {} : { enqueuedAt: toTimestamp(sentMs) }),
    failedAt: toTimestamp(stored.timestampMs),
    body: Uint8Array.from(stored.value),
    contentType: headers['content-type'] ?? 'application/octet-stream',
    headers,
    messageId: `${stored.topic}:${stored.partition}:${stored.offset}`,
    origin: {
      ...(topic === undefined ? {} : { topic }),
      ...(death.partition === undefined ? {} : { partition: death.partition }),
      ...(death.offset === undefined ? {} : { offset: death.offset }),
      ...(timestamp === '' ? {} : { timestamp }),
      ...(by === undefined ? {} : { by }),
      ...(stored.key ? { key: stored.key.toString('base64') } : {}),
      ...(stored.isNull ? { isNull: 'true' } : {}),
      deadLetterTopic: stored.topic,
      bytes: JSON.stringify(bytesOf(stored)),
    },
  }
}

/** How a letter travels home: as it was, with its key, and with how often it went. */
export function homewardOf(letter: SentBack, generation: number): Written | Tombstone {
  const bytes = recordIn(letter.origin['bytes'])
  const headers = new Map<Buffer, Buffer>()
  for (const [name, text] of Object.entries(letter.headers)) {
    if (isOfDeath(name)) continue
    const raw = Buffer.from(bytes[name] ?? '', 'base64')
    // What was no text is as it was, unless somebody has edited it.
    const isSame = Object.hasOwn(bytes, name) && raw.toString() === text
    headers.set(Buffer.from(name), isSame ? raw : Buffer.from(text))
  }
  for (const [name, text] of Object.entries(lineageOf(letter, generation)))
    headers.set(Buffer.from(name), Buffer.from(text))
  const value = Buffer.from(letter.body)
  const { key: base64, isNull } = letter.origin
  if (base64 === undefined) return { value, headers }
  const key = Buffer.from(base64, 'base64')
  // Empty is not the same as nothing: the one is a value, the other takes away what has this key.
  return isNull === 'true' && value.byteLength === 0
    ? { value: null, key, headers }
    : { value, key, headers }
}

function deathBySpring(headers: Record<string, string>): Death {
  const of = (name: string): string | undefined => headers[`${spring}${name}`]
  return told({
    topic: of('original-topic'),
    partition: of('original-partition'),
    offset: of('original-offset'),
    timestamp: of('original-timestamp'),
    by: of('original-consumer-group'),
    // The first is that of the listener around it; the cause is what the work threw.
    error: of('exception-cause-fqcn') ?? of('exception-fqcn') ?? of('key-exception-fqcn'),
    message: of('exception-message') ?? of('key-exception-message'),
    stack: of('exception-stacktrace') ?? of('key-exception-stacktrace'),
  })
}

function deathByConnect(headers: Record<string, string>): Death {
  const of = (name: string): string | undefined => headers[`${connect}${name}`]
  const stage = of('stage')
  const connector = of('connector.name')
  const task = of('task.id')
  const text = of('exception.message')
  return told({
    topic: of('topic'),
    partition: of('partition'),
    offset: of('offset'),
    by: connector === undefined || task === undefined ? connector : `${connector}/${task}`,
    error: of('exception.class.name'),
    message: stage === undefined ? text : [text, `(in ${stage})`].filter(Boolean).join(' '),
    stack: of('exception.stacktrace'),
  })
}

/** By the short name of its class, as rules know it; the stack begins with the long one. */
function thrownIn(
  { message = '', stack }: Death,
  error: string,
): NonNullable<ForeignLetter['error']> {
  const name = error.split(/[.$]/).findLast((part) => part !== '') ?? error
  return stack === undefined ? { name, message } : { name, message, stack }
}

/** Only what was said. */
function told(death: { [K in keyof Death]?: string | undefined }): Death {
  return Object.fromEntries(Object.entries(death).filter(([, value]) => value !== undefined))
}

function textsOf({ headers }: Stored): Record<string, string> {
  const texts = new Map<string, string>()
  // When a name comes twice, the last counts, as with others who read such headers.
  for (const [name, value] of headers) texts.set(name.toString(), textOf(name.toString(), value))
  return Object.fromEntries(texts)
}

function textOf(name: string, value: Buffer): string {
  if (!numbers.has(name)) return value.toString()
  if (value.byteLength === 4) return String(value.readInt32BE())
  if (value.byteLength === 8) return String(value.readBigInt64BE())
  return value.toString()
}

/** Headers that are no texts, as base64 by name. */
function bytesOf({ headers }: Stored): Record<string, string> {
  const odd = headers.flatMap(([name, value]) => {
    const isText = Buffer.from(value.toString()).equals(value)
    return isText || isOfDeath(name.toString()) ? [] : [[name.toString(), value.toString('base64')]]
  })
  return Object.fromEntries(odd) as Record<string, string>
}

function isOfDeath(name: string): boolean {
  return ofDeath.some((start) => name.startsWith(start))
}

function recordIn(json: string | undefined): Record<string, string> {
  try {
    const value: unknown = JSON.parse(json ?? '{}')
    if (typeof value !== 'object' || value === null) return {}
    const texts = Object.entries(value).filter(([, text]) => typeof text === 'string')
    return Object.fromEntries(texts)
  } catch {
    return {}
  }
}

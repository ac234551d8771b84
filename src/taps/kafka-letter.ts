import type { Headers, NewRecord, StoredRecord } from '../backends/kafka/record.ts'
import { readJavaTrace, simpleName } from '../letter/java-trace.ts'
import { lineage } from '../letter/lineage.ts'
import { latestMs, toTimestamp } from '../letter/time.ts'
import { lineageOf } from './returned-message.ts'
import type { ForeignLetter, ReturnedLetter } from './tap.ts'

/** The origin of a dead record and its error, as far as its headers tell. */
interface Death {
  topic?: string
  partition?: string
  offset?: string
  timestamp?: string
  /** The consumer group or connector that failed. */
  by?: string
  /** The class of the exception. */
  error?: string
  message?: string
  stack?: string
}

/** Header prefixes of Spring Kafka: of its recoverer, and mostly of `@RetryableTopic`. */
const springPrefixes = ['kafka_dlt-', 'kafka_'] as const
const connectPrefix = '__connect.errors.'
const retryAttempts = 'retry_topic-attempts'
const deliveryAttempt = 'kafka_deliveryAttempt'

/** Prefixes of headers about the failure. A record that is returned does not have them. */
const deathPrefixes = [
  'kafka_dlt-',
  'kafka_original-',
  'kafka_exception-',
  'kafka_key-exception-',
  'retry_topic-',
  // Spring treats a record with this header as one that could not be deserialized.
  'springDeserializerException',
  deliveryAttempt,
  connectPrefix,
  lineage.replays,
  lineage.originalId,
]

/** Big-endian integers of four or eight bytes. */
const integerHeaders = new Set([
  ...springPrefixes.flatMap((prefix) =>
    ['partition', 'offset', 'timestamp'].map((name) => `${prefix}original-${name}`),
  ),
  deliveryAttempt,
  retryAttempts,
])
/** Big-endian integers in as few bytes as possible. */
const shortIntegerHeaders = new Set([
  'retry_topic-original-timestamp',
  'retry_topic-backoff-timestamp',
])

/** Converts a dead record. One without headers about its failure cannot be returned. */
export function toForeignLetter(record: StoredRecord): ForeignLetter {
  const headers = decodeHeaders(record.headers)
  const connectDeath = readConnectHeaders(headers)
  const death = { ...connectDeath, ...readSpringHeaders(headers) }
  const { topic, error, message, by, timestamp } = death
  const reason = [error, message].filter((part) => part !== undefined && part !== '').join(': ')
  return {
    source: topic ?? record.topic,
    reason: reason === '' ? 'the record does not tell why' : reason,
    ...(error === undefined ? {} : { error: toError(death, error) }),
    deliveries: countDeliveries(headers),
    ...readTimes(record, timestamp, connectDeath.topic !== undefined),
    body: Uint8Array.from(record.value),
    contentType: headers['content-type'] ?? 'application/octet-stream',
    headers,
    messageId: `${record.topic}:${record.partition}:${record.offset}`,
    origin: {
      ...(topic === undefined ? {} : { topic }),
      ...(death.partition === undefined ? {} : { partition: death.partition }),
      ...(death.offset === undefined ? {} : { offset: death.offset }),
      ...(timestamp === undefined ? {} : { timestamp }),
      ...(by === undefined ? {} : { by }),
      ...(record.key ? { key: record.key.toString('base64') } : {}),
      ...(record.isNull ? { isNull: 'true' } : {}),
      deadLetterTopic: record.topic,
      ...encodeOriginalHeaders(record.headers),
    },
  }
}

/** The original record of a letter, with headers that count how often it was returned. */
export function toOriginalRecord(letter: ReturnedLetter, generation: number): NewRecord {
  const headers = new Map<Buffer, Buffer | null>(restoreHeaders(letter))
  for (const [name, value] of Object.entries(lineageOf(letter, generation)))
    headers.set(Buffer.from(name), Buffer.from(value))
  const { key, isNull } = letter.origin
  const body = Buffer.from(letter.body)
  // An edited payload replaces a null value.
  const value = isNull === 'true' && body.byteLength === 0 ? null : body
  return key === undefined
    ? { value, headers }
    : { value, headers, key: Buffer.from(key, 'base64') }
}

/**
 * When the record was sent and when it failed. The dead record of Spring has the timestamp of the
 * failure, and a header with the original timestamp. The dead record of Kafka Connect has the
 * original timestamp, unless the topic uses LogAppendTime.
 */
function readTimes(
  { timestampMs, isAppendTime }: StoredRecord,
  original: string | undefined,
  isFromConnect: boolean,
): Pick<ForeignLetter, 'enqueuedAt' | 'failedAt'> {
  const isOriginal = isFromConnect && !isAppendTime
  const sentMs = original === undefined && isOriginal ? timestampMs : Number(original)
  return {
    ...(sentMs > 0 && sentMs <= latestMs ? { enqueuedAt: toTimestamp(sentMs) } : {}),
    ...(isOriginal ? {} : { failedAt: toTimestamp(timestampMs) }),
  }
}

/** The header of `@RetryableTopic` contains the number of the next attempt. */
function countDeliveries(headers: Strings): number {
  const byTopic = Number(headers[retryAttempts]) - 1
  const byListener = Number(headers[deliveryAttempt])
  return Math.max(1, byTopic || 0, byListener || 0)
}

type Strings = Readonly<Record<string, string>>

function readSpringHeaders(headers: Strings): Death {
  const of = (name: string): string | undefined =>
    springPrefixes.map((prefix) => headers[`${prefix}${name}`]).find((value) => value !== undefined)
  // The cause is the exception of the work; `exception-fqcn` is that of the listener around it.
  const error = of('exception-cause-fqcn') ?? of('exception-fqcn') ?? of('key-exception-fqcn')
  const stack = of('exception-stacktrace') ?? of('key-exception-stacktrace')
  // The message header is that of the listener, followed by that of the cause.
  const own = readJavaTrace(stack ?? '').find(({ type }) => type === error)?.message
  return dropUndefined({
    topic: of('original-topic'),
    partition: of('original-partition'),
    offset: of('original-offset'),
    timestamp: of('original-timestamp'),
    by: of('original-consumer-group'),
    error,
    message: own ?? of('exception-message') ?? of('key-exception-message'),
    stack,
  })
}

function readConnectHeaders(headers: Strings): Death {
  const of = (name: string): string | undefined => headers[`${connectPrefix}${name}`]
  const stage = of('stage')
  const connector = of('connector.name')
  const task = of('task.id')
  const message = of('exception.message')
  return dropUndefined({
    topic: of('topic'),
    partition: of('partition'),
    offset: of('offset'),
    by: connector === undefined || task === undefined ? connector : `${connector}/${task}`,
    error: of('exception.class.name'),
    message: stage === undefined ? message : [message, `(in ${stage})`].filter(Boolean).join(' '),
    stack: of('exception.stacktrace'),
  })
}

/** The error has the simple name of its class, as rules use it. The stack has the full name. */
function toError(
  { message = '', stack }: Death,
  error: string,
): NonNullable<ForeignLetter['error']> {
  const name = simpleName(error)
  return stack === undefined ? { name, message } : { name, message, stack }
}

function dropUndefined(death: { [K in keyof Death]?: string | undefined }): Death {
  return Object.fromEntries(Object.entries(death).filter(([, value]) => value !== undefined))
}

/** The last value of a name wins, as in other programs that read these headers. */
function decodeHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    headers.map(([name, value]) => [name.toString(), decodeHeader(name.toString(), value)]),
  )
}

function decodeHeader(name: string, value: Buffer | null): string {
  if (!value) return ''
  const { byteLength } = value
  if (integerHeaders.has(name) && byteLength === 4) return String(value.readInt32BE())
  if (integerHeaders.has(name) && byteLength === 8) return String(value.readBigInt64BE())
  const isShort = shortIntegerHeaders.has(name) && byteLength > 0 && byteLength <= 6
  return isShort ? String(value.readIntBE(0, byteLength)) : value.toString()
}

type Pair = [name: Buffer, value: Buffer | null]

/** The original headers as JSON, in order, unless their strings are enough to restore them. */
function encodeOriginalHeaders(headers: Headers): { headers?: string } {
  const original = headers.filter(([name]) => !isAboutDeath(name.toString()))
  const decoded = Object.entries(decodeHeaders(original))
  const isLossless =
    decoded.length === original.length &&
    original.every(([name, value], at) => {
      const [key = '', text = ''] = decoded[at] ?? []
      return value && name.equals(Buffer.from(key)) && value.equals(Buffer.from(text))
    })
  if (isLossless) return {}
  const pairs = original.map(([name, value]) => [
    name.toString('base64'),
    value ? value.toString('base64') : null,
  ])
  return { headers: JSON.stringify(pairs) }
}

/** Edited headers as they are now, the other ones as they were. */
function restoreHeaders({ headers, origin }: ReturnedLetter): Pair[] {
  const current = new Map(Object.entries(headers).filter(([name]) => !isAboutDeath(name)))
  const original = decodePairs(origin['headers'])
  const last = new Map(original.map(([name, value]) => [name.toString(), value?.toString() ?? '']))
  const isSame = (name: string): boolean =>
    current.has(name) && current.get(name) === last.get(name)
  const edited = [...current].filter(([name]) => !isSame(name))
  return [
    ...original.filter(([name]) => isSame(name.toString())),
    ...edited.map(([name, value]): Pair => [Buffer.from(name), Buffer.from(value)]),
  ]
}

function decodePairs(json = '[]'): Pair[] {
  try {
    const pairs: unknown = JSON.parse(json)
    return Array.isArray(pairs) ? pairs.filter(isPair).map(decodePair) : []
  } catch {
    return []
  }
}

function isPair(value: unknown): value is [string, string | null] {
  if (!Array.isArray(value)) return false
  const [name, encoded] = value as unknown[]
  return typeof name === 'string' && (typeof encoded === 'string' || encoded === null)
}

function decodePair([name, value]: [string, string | null]): Pair {
  return [Buffer.from(name, 'base64'), value === null ? null : Buffer.from(value, 'base64')]
}

function isAboutDeath(name: string): boolean {
  return deathPrefixes.some((start) => name.startsWith(start))
}

import type { Headers, Stored, Written } from '../backends/kafka/record.ts'
import { readJavaTrace, simpleName } from '../letter/java-trace.ts'
import { lineage } from '../letter/lineage.ts'
import { latestMs, toTimestamp } from '../letter/time.ts'
import { lineageOf } from './returned-message.ts'
import type { ForeignLetter, ReturnedLetter } from './tap.ts'

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

/** What Spring Kafka writes in front of the names: its recoverer the first, `@RetryableTopic` mostly the second. */
const spring = ['kafka_dlt-', 'kafka_'] as const
const connect = '__connect.errors.'
const retryAttempts = 'retry_topic-attempts'
const deliveryAttempt = 'kafka_deliveryAttempt'

/** Headers whose names begin with these are about the failure. They do not go back with the record. */
const ofDeath = [
  'kafka_dlt-',
  'kafka_original-',
  'kafka_exception-',
  'kafka_key-exception-',
  'retry_topic-',
  // With it, Spring would take a record for one that could not be deserialized.
  'springDeserializerException',
  deliveryAttempt,
  connect,
  lineage.replays,
  lineage.originalId,
]

/** Java writes these as big-endian numbers, of four bytes or eight. */
const numbers = new Set([
  ...spring.flatMap((prefix) =>
    ['partition', 'offset', 'timestamp'].map((name) => `${prefix}original-${name}`),
  ),
  deliveryAttempt,
  retryAttempts,
])
/** Java writes these as big-endian numbers, in as few bytes as they need. */
const shortNumbers = new Set(['retry_topic-original-timestamp', 'retry_topic-backoff-timestamp'])

/** A record of a dead letter topic as a letter. One that nobody wrote anything on is a letter too, but does not know its way home. */
export function foreignLetterOf(stored: Stored): ForeignLetter {
  const headers = textsOf(stored.headers)
  const byConnect = deathByConnect(headers)
  const death = { ...byConnect, ...deathBySpring(headers) }
  const { topic, error, message, by, timestamp } = death
  const why = [error, message].filter((part) => part !== undefined && part !== '').join(': ')
  return {
    source: topic ?? stored.topic,
    reason: why === '' ? 'nobody wrote on it why' : why,
    ...(error === undefined ? {} : { error: thrownIn(death, error) }),
    deliveries: deliveriesIn(headers),
    ...timesOf(stored, timestamp, byConnect.topic !== undefined),
    body: Uint8Array.from(stored.value),
    contentType: headers['content-type'] ?? 'application/octet-stream',
    headers,
    messageId: `${stored.topic}:${stored.partition}:${stored.offset}`,
    origin: {
      ...(topic === undefined ? {} : { topic }),
      ...(death.partition === undefined ? {} : { partition: death.partition }),
      ...(death.offset === undefined ? {} : { offset: death.offset }),
      ...(timestamp === undefined ? {} : { timestamp }),
      ...(by === undefined ? {} : { by }),
      ...(stored.key ? { key: stored.key.toString('base64') } : {}),
      ...(stored.isNull ? { isNull: 'true' } : {}),
      deadLetterTopic: stored.topic,
      ...originalHeaders(stored.headers),
    },
  }
}

/** How a letter travels home: as it was, with its key, and with how often it went. */
export function homewardOf(letter: ReturnedLetter, generation: number): Written {
  const headers = new Map<Buffer, Buffer | null>(headersOf(letter))
  for (const [name, text] of Object.entries(lineageOf(letter, generation)))
    headers.set(Buffer.from(name), Buffer.from(text))
  const { key, isNull } = letter.origin
  const body = Buffer.from(letter.body)
  // An edited payload takes the place of no value.
  const value = isNull === 'true' && body.byteLength === 0 ? null : body
  return key === undefined
    ? { value, headers }
    : { value, headers, key: Buffer.from(key, 'base64') }
}

/**
 * When it was sent and when it failed. Spring's recoverer sends a new record, whose timestamp is that of the failure, and writes down the
 * one before. Kafka Connect copies the timestamp of the original to the new record and does not say when it failed, unless the topic has
 * the broker's time.
 */
function timesOf(
  { timestampMs, isAppendTime }: Stored,
  original: string | undefined,
  isConnects: boolean,
): Pick<ForeignLetter, 'enqueuedAt' | 'failedAt'> {
  const isOriginal = isConnects && !isAppendTime
  const sentMs = original === undefined && isOriginal ? timestampMs : Number(original)
  return {
    ...(sentMs > 0 && sentMs <= latestMs ? { enqueuedAt: toTimestamp(sentMs) } : {}),
    ...(isOriginal ? {} : { failedAt: toTimestamp(timestampMs) }),
  }
}

/** `@RetryableTopic` counts the attempt that would be next. */
function deliveriesIn(headers: Texts): number {
  const byTopic = Number(headers[retryAttempts]) - 1
  const byListener = Number(headers[deliveryAttempt])
  return Math.max(1, byTopic || 0, byListener || 0)
}

type Texts = Readonly<Record<string, string>>

function deathBySpring(headers: Texts): Death {
  const of = (name: string): string | undefined =>
    spring.map((prefix) => headers[`${prefix}${name}`]).find((text) => text !== undefined)
  // The first is that of the listener around it; the cause is what the work threw.
  const error = of('exception-cause-fqcn') ?? of('exception-fqcn') ?? of('key-exception-fqcn')
  const stack = of('exception-stacktrace') ?? of('key-exception-stacktrace')
  // The message that Spring writes is that of the listener, with that of the cause behind it.
  const own = readJavaTrace(stack ?? '').find(({ type }) => type === error)?.message
  return told({
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

function deathByConnect(headers: Texts): Death {
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

/** By the simple name of its class, as rules know it; the stack begins with the whole name. */
function thrownIn(
  { message = '', stack }: Death,
  error: string,
): NonNullable<ForeignLetter['error']> {
  const name = simpleName(error)
  return stack === undefined ? { name, message } : { name, message, stack }
}

/** Only what was said. */
function told(death: { [K in keyof Death]?: string | undefined }): Death {
  return Object.fromEntries(Object.entries(death).filter(([, value]) => value !== undefined))
}

/** When a name comes twice, the last counts, as with others who read such headers. */
function textsOf(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    headers.map(([name, value]) => [name.toString(), textOf(name.toString(), value)]),
  )
}

function textOf(name: string, value: Buffer | null): string {
  if (!value) return ''
  const { byteLength } = value
  if (numbers.has(name) && byteLength === 4) return String(value.readInt32BE())
  if (numbers.has(name) && byteLength === 8) return String(value.readBigInt64BE())
  const isShort = shortNumbers.has(name) && byteLength > 0 && byteLength <= 6
  return isShort ? String(value.readIntBE(0, byteLength)) : value.toString()
}

type Pair = [name: Buffer, value: Buffer | null]

/** The headers that go back, byte for byte, where their texts alone do not say what they were: as JSON, in order. */
function originalHeaders(headers: Headers): { headers?: string } {
  const own = headers.filter(([name]) => !isOfDeath(name.toString()))
  const texts = Object.entries(textsOf(own))
  const isPlain =
    texts.length === own.length &&
    own.every(([name, value], at) => {
      const [key = '', text = ''] = texts[at] ?? []
      return value && name.equals(Buffer.from(key)) && value.equals(Buffer.from(text))
    })
  if (isPlain) return {}
  const pairs = own.map(([name, value]) => [
    name.toString('base64'),
    value ? value.toString('base64') : null,
  ])
  return { headers: JSON.stringify(pairs) }
}

/** What was edited as it is now, and all others as they were. */
function headersOf({ headers: now, origin }: ReturnedLetter): Pair[] {
  const texts = new Map(Object.entries(now).filter(([name]) => !isOfDeath(name)))
  const before = pairsIn(origin['headers'])
  const last = new Map(before.map(([name, value]) => [name.toString(), value?.toString() ?? '']))
  const isSame = (name: string): boolean => texts.has(name) && texts.get(name) === last.get(name)
  const edited = [...texts].filter(([name]) => !isSame(name))
  return [
    ...before.filter(([name]) => isSame(name.toString())),
    ...edited.map(([name, text]): Pair => [Buffer.from(name), Buffer.from(text)]),
  ]
}

function pairsIn(json = '[]'): Pair[] {
  try {
    const pairs: unknown = JSON.parse(json)
    return Array.isArray(pairs) ? pairs.filter(isPair).map(pairOf) : []
  } catch {
    return []
  }
}

function isPair(value: unknown): value is [string, string | null] {
  if (!Array.isArray(value)) return false
  const [name, text] = value as unknown[]
  return typeof name === 'string' && (typeof text === 'string' || text === null)
}

function pairOf([name, text]: [string, string | null]): Pair {
  return [Buffer.from(name, 'base64'), text === null ? null : Buffer.from(text, 'base64')]
}

function isOfDeath(name: string): boolean {
  return ofDeath.some((start) => name.startsWith(start))
}

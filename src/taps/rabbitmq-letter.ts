import type { Message, Options } from 'amqplib'
import { RedriveError } from '../errors.ts'
import { toTimestamp } from '../letter/time.ts'
import { formatValue, fromJson, lossOf, toJson } from '../backends/rabbitmq/field-values.ts'
import { checkHeaderSize, headersOf, timestampToMs } from '../backends/rabbitmq/form.ts'
import { lineageOf } from './returned-message.ts'
import type { ForeignLetter, ReturnedLetter } from './tap.ts'

/** One time that a message died, as RabbitMQ tells it. */
interface Death {
  reason: string
  queue: string
  exchange: string
  routingKey: string
  count: number
  atMs: number | undefined
}

/**
 * A message of a dead letter queue as a letter. One that never died, since somebody put it there by
 * hand, is a letter too.
 */
export function foreignLetterOf(
  message: Message,
  about: { queue: string; freshId: () => string },
): ForeignLetter {
  const { fields, properties, content } = message
  const headers = headersOf(message)
  const deaths = deathsIn(headers['x-death'])
  const first = firstOf(deaths, headers) ?? {
    queue: about.queue,
    exchange: fields.exchange,
    routingKey: fields.routingKey,
  }
  const last = deaths[0]
  const sentMs = timestampToMs(properties.timestamp)
  return {
    source: first.queue,
    reason: last?.reason ?? 'unknown',
    deliveries: deliveriesOf(deaths, first.queue, headers['x-delivery-count']),
    ...(sentMs === undefined ? {} : { enqueuedAt: toTimestamp(sentMs) }),
    ...(last?.atMs === undefined ? {} : { failedAt: toTimestamp(last.atMs) }),
    body: Buffer.from(content),
    contentType: textOf(properties.contentType) ?? 'application/octet-stream',
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, formatValue(value)]),
    ),
    // RabbitMQ has nothing else that tells two messages from a message that is read twice. A
    // duplicate letter is better than a lost one.
    messageId: textOf(properties.messageId) ?? about.freshId(),
    ...(last ? { death: deathOf(deaths) } : {}),
    origin: {
      queue: first.queue,
      exchange: first.exchange,
      routingKey: first.routingKey,
      typed: JSON.stringify(typedHeaders(headers)),
      ...lossesIn(headers),
      properties: JSON.stringify(propertiesOf(properties)),
    },
  }
}

/** Headers that the server adds to dead letters, or would act upon. */
const notReturned = /^(x-death|x-(first|last)-death-.*|x-delivery-count|b?cc)$/i

/**
 * Builds the properties of a letter that returns to its source: as it was read, plus the lineage
 * headers. Rejects a header that could not be read exactly.
 */
export function toPublishOptions(letter: ReturnedLetter, generation: number): Options.Publish {
  const typed = recordIn(letter.origin['typed'])
  const losses = recordIn(letter.origin['lossy'])
  const properties = propertiesOf(recordIn(letter.origin['properties']))
  const headers = Object.entries(letter.headers)
    .filter(([name]) => !notReturned.test(name))
    .map(([name, text]) => {
      // A header that somebody has edited is sent as a string.
      if (!isAsRead(typed, name, text)) return [name, text] as const
      if (Object.hasOwn(losses, name)) throw lossy(name, text, String(losses[name]))
      return [name, fromJson(typed[name])] as const
    })
  const { contentType = defaultContentType } = properties
  return {
    ...properties,
    // A content type that the message did not have is added only if an edit has changed it.
    ...(letter.contentType === contentType ? {} : { contentType: letter.contentType }),
    headers: checkHeaderSize({ ...Object.fromEntries(headers), ...lineageOf(letter, generation) }),
  }
}

const defaultContentType = 'application/octet-stream'

function isAsRead(typed: Record<string, unknown>, name: string, text: string): boolean {
  return Object.hasOwn(typed, name) && formatValue(typed[name]) === text
}

function lossy(name: string, text: string, why: string): RedriveError {
  const header = JSON.stringify(name)
  return new RedriveError(
    'INVALID_INPUT',
    `the header ${header} could not be read exactly (${why}; read as ${text.slice(0, 80)}): give ${header} another value or remove it from the headers of the letter, then return the letter again`,
  )
}

/** The deaths, newest first. Entries that RabbitMQ did not write are skipped. */
function deathsIn(value: unknown): Death[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((entry: unknown) => {
    if (typeof entry !== 'object' || entry === null) return []
    const {
      reason,
      queue,
      exchange,
      count,
      time,
      'routing-keys': keys,
    } = entry as Partial<Record<string, unknown>>
    if (typeof queue !== 'string' || typeof reason !== 'string') return []
    const at = typeof time === 'object' && time !== null && 'value' in time ? time.value : time
    const routingKey: unknown = Array.isArray(keys) ? keys[0] : undefined
    return {
      reason,
      queue,
      exchange: typeof exchange === 'string' ? exchange : '',
      routingKey: typeof routingKey === 'string' ? routingKey : queue,
      count: typeof count === 'number' && count >= 1 ? count : 1,
      atMs: timestampToMs(at),
    }
  })
}

/** The first queue in which the message died is its original destination. */
function firstOf(deaths: readonly Death[], headers: Record<string, unknown>): Death | undefined {
  const queue = headers['x-first-death-queue']
  const reason = headers['x-first-death-reason']
  return deaths.find((death) => death.queue === queue && death.reason === reason) ?? deaths.at(-1)
}

/**
 * Identifies the death. If somebody moves the message back by other means, older servers continue
 * the count in the header, and newer ones restart it with another timestamp.
 */
function deathOf(deaths: readonly Death[]): string {
  const count = deaths.reduce((sum, death) => sum + death.count, 0)
  return `${count} ${deaths[0]?.atMs ?? ''}`
}

/** The server counts deaths. It counts deliveries only if the queue has a delivery limit. */
function deliveriesOf(deaths: readonly Death[], queue: string, counted: unknown): number {
  const died = deaths
    .filter((death) => death.queue === queue && death.reason !== 'expired')
    .reduce((sum, death) => sum + death.count, 0)
  return Math.max(died, typeof counted === 'number' ? counted : 0)
}

/**
 * Headers that are not plain strings, and strings that were not read exactly, as JSON that
 * preserves their types.
 */
function typedHeaders(headers: Record<string, unknown>): Record<string, unknown> {
  const typed = Object.entries(headers).filter(
    ([name, value]) =>
      !notReturned.test(name) && (typeof value !== 'string' || lossOf(value) !== undefined),
  )
  return Object.fromEntries(typed.map(([name, value]) => [name, toJson(value)]))
}

/** Why headers were not read exactly, by header name. Empty if all were. */
function lossesIn(headers: Record<string, unknown>): { lossy?: string } {
  const losses = Object.entries(headers).flatMap(([name, value]) => {
    const loss = notReturned.test(name) ? undefined : lossOf(value)
    return loss === undefined ? [] : [[name, loss] as const]
  })
  return losses.length === 0 ? {} : { lossy: JSON.stringify(Object.fromEntries(losses)) }
}

/**
 * Leaves out the user id, which the server would compare with ours, and the time to live, which may
 * have expired the message before.
 */
const sentBack = [
  'contentType',
  'contentEncoding',
  'correlationId',
  'replyTo',
  'messageId',
  'timestamp',
  'type',
  'appId',
  'priority',
  'deliveryMode',
]

function propertiesOf(of: object): Options.Publish {
  const there = Object.entries(of).filter(
    ([name, value]) => sentBack.includes(name) && value !== undefined && value !== null,
  )
  return Object.fromEntries(there)
}

/** Empty if the value was not written by this file. */
function recordIn(json: string | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json ?? '{}')
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

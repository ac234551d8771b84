import type { Message, Options } from 'amqplib'
import { RedriveError } from '../errors.ts'
import { toTimestamp } from '../letter/time.ts'
import { formatValue, fromJson, lossOf, toJson } from '../backends/rabbitmq/field-values.ts'
import { fitting, headersOf, msOf } from '../backends/rabbitmq/form.ts'
import { lineageOf } from './homeward.ts'
import type { ForeignLetter, SentBack } from './tap.ts'

/** One time that a message died, as RabbitMQ tells it. */
interface Death {
  reason: string
  queue: string
  exchange: string
  routingKey: string
  count: number
  atMs: number | undefined
}

/** A message of a dead letter queue as a letter. One that never died, since somebody put it there by hand, is a letter too. */
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
  const sentMs = msOf(properties.timestamp)
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
    // Nothing else in RabbitMQ tells two messages from one that comes twice; and a letter too many is better than one too few.
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

/** What the server adds to dead letters, or would act upon. */
const notSentBack = /^(x-death|x-(first|last)-death-.*|x-delivery-count|b?cc)$/i

/** How a letter is sent back: as it was, with the lineage headers in addition. Rejects a header that could not be read exactly. */
export function homewardOf(letter: SentBack, generation: number): Options.Publish {
  const typed = recordIn(letter.origin['typed'])
  const losses = recordIn(letter.origin['lossy'])
  const properties = propertiesOf(recordIn(letter.origin['properties']))
  const headers = Object.entries(letter.headers)
    .filter(([name]) => !notSentBack.test(name))
    .map(([name, text]) => {
      // A header that somebody has edited is sent as the string that it is now.
      if (!isAsRead(typed, name, text)) return [name, text] as const
      if (Object.hasOwn(losses, name)) throw lossy(name, text, String(losses[name]))
      return [name, fromJson(typed[name])] as const
    })
  const { contentType = defaultContentType } = properties
  return {
    ...properties,
    // A content type that was not there is added only when an edit has made the body something else.
    ...(letter.contentType === contentType ? {} : { contentType: letter.contentType }),
    headers: fitting({ ...Object.fromEntries(headers), ...lineageOf(letter, generation) }),
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
    `the header ${header} could not be read exactly (${why}; read as ${text.slice(0, 80)}): edit the headers of the letter, giving ${header} another value or leaving it out, and send it back then`,
  )
}

/** The newest first. What is not as RabbitMQ writes it is passed over. */
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
      atMs: msOf(at),
    }
  })
}

/** Where it died first is where it was meant to be. */
function firstOf(deaths: readonly Death[], headers: Record<string, unknown>): Death | undefined {
  const queue = headers['x-first-death-queue']
  const reason = headers['x-first-death-reason']
  return deaths.find((death) => death.queue === queue && death.reason === reason) ?? deaths.at(-1)
}

/** If somebody moves it back by other means, older servers count on from what is written on it, and newer ones begin anew with another time. */
function deathOf(deaths: readonly Death[]): string {
  const count = deaths.reduce((sum, death) => sum + death.count, 0)
  return `${count} ${deaths[0]?.atMs ?? ''}`
}

/** The server counts how often it died, and says how often it was delivered only if the queue has a limit. */
function deliveriesOf(deaths: readonly Death[], queue: string, counted: unknown): number {
  const died = deaths
    .filter((death) => death.queue === queue && death.reason !== 'expired')
    .reduce((sum, death) => sum + death.count, 0)
  return Math.max(died, typeof counted === 'number' ? counted : 0)
}

/** Headers that are not plain strings, as JSON that keeps their types; and strings that were not read exactly. */
function typedHeaders(headers: Record<string, unknown>): Record<string, unknown> {
  const typed = Object.entries(headers).filter(
    ([name, value]) =>
      !notSentBack.test(name) && (typeof value !== 'string' || lossOf(value) !== undefined),
  )
  return Object.fromEntries(typed.map(([name, value]) => [name, toJson(value)]))
}

/** Why headers were not read exactly, by their names; nothing when all were. */
function lossesIn(headers: Record<string, unknown>): { lossy?: string } {
  const losses = Object.entries(headers).flatMap(([name, value]) => {
    const loss = notSentBack.test(name) ? undefined : lossOf(value)
    return loss === undefined ? [] : [[name, loss] as const]
  })
  return losses.length === 0 ? {} : { lossy: JSON.stringify(Object.fromEntries(losses)) }
}

/** Left out are a user, whom the server would compare with ours, and a time to live, which may have ended it before. */
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

/** Nothing, when it is not what we wrote. */
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

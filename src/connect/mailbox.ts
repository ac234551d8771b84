import { systemClock, type Clock } from '../clock/clock.ts'
import { needing } from './store.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { Mailbox, MailboxResolver } from '../mailbox.ts'
import { openedByName } from '../mailboxes/opened-by-name.ts'
import { retentionIn } from '../backends/retention.ts'
import { urlBeside } from '../backends/sqs/address.ts'
import { queryOf, sqliteFileOf, unescaped, urlSettings } from '../backends/url.ts'
import { nearest } from '../check/nearest.ts'

export interface OpenMailboxOptions {
  /** Which mailbox of the broker, when the URL does not end in `#name`. */
  name?: string
  /** Where replies go. Unless said, to mailboxes of the same broker by their names. */
  resolver?: MailboxResolver
  clock?: Clock
  /**
   * Messages older than this are removed when the mailbox is received from, and reported (`mailbox.on('expired', …)`). Also
   * `?retentionSeconds=` in the URL. SQS takes 1,209,600 (14 days) at the most. Default: messages are kept for ever.
   */
  retentionSeconds?: number
}

const optionKeys = keysOf<OpenMailboxOptions>({
  name: true,
  resolver: true,
  clock: true,
  retentionSeconds: true,
})

/** What every driver is given; `url` without the name. */
interface Given {
  url: string
  name: string
  resolver: MailboxResolver
  clock?: Clock
  retentionSeconds?: number
}

/** The settings of URLs of brokers that have no others. */
const retentionKey = ['retentionSeconds'] as const

/** Drivers by the scheme of their URL. Each is loaded only when it is asked for. */
const drivers: Record<string, (given: Given) => Promise<Mailbox>> = {
  memory: async ({ url, ...given }) => {
    const retention = retentionIn(urlSettings('memory URL', queryOf(url), retentionKey))
    const broker = memoryBrokerOf(url)
    const { memoryMailbox } = await import('../mailboxes/memory/memory.ts')
    return memoryMailbox({ ...retention, ...given, broker })
  },
  sqlite: async ({ url, ...given }) => {
    const path = sqliteFileOf(url)
    if (!path) throw badUrl('sqlite: needs a file, as in sqlite:mail.db#requests')
    const retention = retentionIn(urlSettings('SQLite mailbox URL', queryOf(url), retentionKey))
    const { sqliteMailbox } = await import('../mailboxes/sqlite/sqlite.ts')
    return sqliteMailbox({ ...retention, ...given, path })
  },
  postgres: async (given) =>
    (
      await needing('pg', () => import('../mailboxes/postgres/postgres.ts'), 'mailbox')
    ).postgresMailbox(given),
  redis: async (given) =>
    (await needing('redis', () => import('../mailboxes/redis/redis.ts'), 'mailbox')).redisMailbox(
      given,
    ),
  amqp: async (given) =>
    (
      await needing('amqplib', () => import('../mailboxes/rabbitmq/rabbitmq.ts'), 'mailbox')
    ).rabbitmqMailbox(given),
  nats: async (given) =>
    (
      await needing(
        '@nats-io/transport-node',
        () => needing('@nats-io/jetstream', () => import('../mailboxes/nats/nats.ts'), 'mailbox'),
        'mailbox',
      )
    ).natsMailbox(given),
  sqs: async (given) =>
    (
      await needing('@aws-sdk/client-sqs', () => import('../mailboxes/sqs/sqs.ts'), 'mailbox')
    ).sqsMailbox(given),
  kafka: async (given) =>
    (
      await needing('@platformatic/kafka', () => import('../mailboxes/kafka/kafka.ts'), 'mailbox')
    ).kafkaMailbox(given),
}

/** Other spellings of a scheme: over TLS, or by habit. */
const alike = new Map([
  ['postgresql', 'postgres'],
  ['rediss', 'redis'],
  ['amqps', 'amqp'],
  ['tls', 'nats'],
  ['https', 'sqs'],
  ['kafkas', 'kafka'],
])

/** What people call brokers whose URLs begin otherwise. */
const brands = new Map([
  ['rabbitmq', 'amqp'],
  ['jetstream', 'nats'],
])

/**
 * Opens a mailbox by its URL and name: `memory:#requests`, `sqlite:mail.db#requests`, `postgres://…#requests`, `redis://…#requests`,
 * `amqp://…#requests`, `nats://…#requests`, `sqs://…#requests`, `kafka://…#requests`. What stands between `memory:` and `#` names a
 * broker in this process, which lives as long as one of its mailboxes is open.
 */
export async function openMailbox(url: string, options: OpenMailboxOptions = {}): Promise<Mailbox> {
  checkKeys('mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  // An environment variable that is not set, for one, gives none.
  const [broker, fragment] = splitName(typeof url === 'string' ? url : '')
  const driver = driverOf(broker)
  const name = options.name ?? fragment
  if (name === undefined || name === '')
    throw badUrl(`a mailbox needs a name, as in ${schemeOf(broker) ?? 'sqlite'}:…#requests`)
  const { clock = systemClock } = options
  const resolver = options.resolver ?? sameBroker(broker, clock)
  const given: Given = { url: broker, name, resolver }
  // A server's own time is better than ours, so that the system's clock is not passed on.
  if (clock !== systemClock) given.clock = clock
  if (options.retentionSeconds !== undefined) given.retentionSeconds = options.retentionSeconds
  const mailbox = await driver(given)
  try {
    await mailbox.open()
    return mailbox
  } catch (error) {
    // Nobody else can: what it holds by now would keep the process alive.
    await mailbox.close().catch(() => {})
    throw error
  }
}

/** Finds mailboxes by name among these. */
export function resolverOf(mailboxes: readonly Mailbox[]): MailboxResolver {
  const byName = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]))
  return { resolve: (name) => byName.get(name) }
}

/** Opens what is asked for on the broker that the question came from, and closes it with its asker. */
function sameBroker(broker: string, clock: Clock): MailboxResolver {
  // The URL of a queue leads to that queue, whatever the mailbox is called.
  const urlOf = (name: string): string =>
    schemeOf(broker) === 'sqs' ? urlBeside(broker, name) : broker
  const resolver = { resolve: () => undefined }
  return openedByName((name) => openMailbox(urlOf(name), { name, clock, resolver }), clock)
}

function splitName(url: string): [broker: string, name: string | undefined] {
  const at = url.indexOf('#')
  if (at < 0) return [url, undefined]
  const name = url.slice(at + 1)
  return [url.slice(0, at), unescaped(name)]
}

/** What stands between `memory:` and the settings or the name; the empty name is a broker too. */
function memoryBrokerOf(url: string): string {
  return unescaped(/^memory:([^?]*)/i.exec(url)?.[1] ?? '')
}

function schemeOf(url: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  return scheme === undefined ? undefined : (alike.get(scheme) ?? scheme)
}

function driverOf(url: string): (given: Given) => Promise<Mailbox> {
  const scheme = schemeOf(url)
  if (scheme !== undefined && Object.hasOwn(drivers, scheme)) return drivers[scheme]!
  const known = Object.keys(drivers)
  const near = scheme === undefined ? undefined : (brands.get(scheme) ?? nearest(scheme, known))
  const hint = near ? `did you mean ${near}:?` : `known: ${known.join(':, ')}:`
  throw badUrl(
    scheme === undefined
      ? `a mailbox is opened by a URL, as in sqlite:mail.db#requests; ${hint}`
      : `no mailbox has URLs that begin with ${scheme}: ${hint}`,
  )
}

function badUrl(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}

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
  /** Name of the mailbox, if the URL does not end in `#name`. */
  name?: string
  /** Finds the mailboxes for replies. Default: mailboxes of the same broker, by name. */
  resolver?: MailboxResolver
  clock?: Clock
  /**
   * Messages older than this are removed when the mailbox is received from, and reported
   * (`mailbox.on('expired', …)`). Also `?retentionSeconds=` in the URL. The maximum for SQS is
   * 1,209,600 (14 days). Default: messages never expire.
   */
  retentionSeconds?: number
}

const optionKeys = keysOf<OpenMailboxOptions>({
  name: true,
  resolver: true,
  clock: true,
  retentionSeconds: true,
})

/** The arguments of every driver; `url` is without the name. */
interface Given {
  url: string
  name: string
  resolver: MailboxResolver
  clock?: Clock
  retentionSeconds?: number
}

/** The URL settings of brokers that have no others. */
const retentionKey = ['retentionSeconds'] as const

/** Drivers by URL scheme. Each is loaded on first use. */
const drivers: Record<string, (given: Given) => Promise<Mailbox>> = {
  memory: async ({ url, ...given }) => {
    const retention = retentionIn(urlSettings('memory URL', queryOf(url), retentionKey))
    const broker = memoryBrokerOf(url)
    const { memoryMailbox } = await import('../mailboxes/memory/memory.ts')
    return memoryMailbox({ ...retention, ...given, broker })
  },
  sqlite: async ({ url, ...given }) => {
    const path = sqliteFileOf(url)
    if (!path) throw badUrl('sqlite: needs a file, such as sqlite:mail.db#requests')
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

/** Aliases of schemes, such as those for TLS. */
const alike = new Map([
  ['postgresql', 'postgres'],
  ['rediss', 'redis'],
  ['amqps', 'amqp'],
  ['tls', 'nats'],
  ['https', 'sqs'],
  ['kafkas', 'kafka'],
])

/** Common names of brokers, and their schemes. */
const brands = new Map([
  ['rabbitmq', 'amqp'],
  ['jetstream', 'nats'],
])

/**
 * Opens a mailbox by its URL and name: `memory:#requests`, `sqlite:mail.db#requests`,
 * `postgres://…#requests`, `redis://…#requests`, `amqp://…#requests`, `nats://…#requests`,
 * `sqs://…#requests`, `kafka://…#requests`. The part between `memory:` and `#` names a broker in
 * this process, which exists as long as one of its mailboxes is open.
 */
export async function openMailbox(url: string, options: OpenMailboxOptions = {}): Promise<Mailbox> {
  checkKeys('mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  // The URL may be undefined at run time, for example from an unset environment variable.
  const [broker, fragment] = splitName(typeof url === 'string' ? url : '')
  const driver = driverOf(broker)
  const name = options.name ?? fragment
  if (name === undefined || name === '')
    throw badUrl(`a mailbox needs a name, such as ${schemeOf(broker) ?? 'sqlite'}:…#requests`)
  const { clock = systemClock } = options
  const resolver = options.resolver ?? sameBroker(broker, clock)
  const given: Given = { url: broker, name, resolver }
  // Servers use their own time, so the system clock is not passed to drivers.
  if (clock !== systemClock) given.clock = clock
  if (options.retentionSeconds !== undefined) given.retentionSeconds = options.retentionSeconds
  const mailbox = await driver(given)
  try {
    await mailbox.open()
    return mailbox
  } catch (error) {
    // Nothing else closes the mailbox, and its connection would keep the process alive.
    await mailbox.close().catch(() => {})
    throw error
  }
}

/** Finds mailboxes by name among these. */
export function resolverOf(mailboxes: readonly Mailbox[]): MailboxResolver {
  const byName = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]))
  return { resolve: (name) => byName.get(name) }
}

/**
 * Opens mailboxes of the same broker on demand, and closes them with the mailbox that asked for
 * them.
 */
function sameBroker(broker: string, clock: Clock): MailboxResolver {
  // The URL of an SQS queue addresses that queue, whatever the name of the mailbox.
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

/** The part between `memory:` and the settings or the name. An empty string is a broker as well. */
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
      ? `a mailbox URL must begin with a scheme, such as sqlite:mail.db#requests; ${hint}`
      : `unknown mailbox scheme ${scheme}: ${hint}`,
  )
}

function badUrl(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}

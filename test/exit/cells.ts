// The exit matrix as data: every driver with every possible refusal.
import type { ErrorCode } from '../../src/errors.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import type { Request } from './program.ts'
import type { TestServers } from './servers.ts'

/** One refusal of a driver. */
export interface Cell {
  open: Request['open']
  driver: string
  refusal: string
  /** The required server or tool, by its name in `missing`. */
  needs?: string
  url: (at: TestServers) => string
  code: ErrorCode
  /** The expected message. */
  says: RegExp
  /** The server is only unreachable: a queue with a spool opens. */
  away?: boolean
  options?: (at: TestServers) => QueueOptions
  /** The message of the CLI, where it checks before it opens. */
  cli?: { code: ErrorCode; says: RegExp }
}

/** An impossible refusal of a driver, with the reason. */
export interface NoCell {
  driver: string
  refusal: string
  why: string
}

type Row = Omit<Cell, 'open' | 'driver'>

const rows = (open: Cell['open'], driver: string, all: Row[]): Cell[] =>
  all.map((row) => ({ open, driver, ...row }))

const file = (at: TestServers, name: string): string => `sqlite:${at.folder}/${name}`

const noFile = { code: 'STORE_UNAVAILABLE', says: /the store file .* does not exist/ } as const

/** File refusals of stores and mailboxes; `coded` maps the error codes. */
const badFiles = (coded: (usual: ErrorCode) => ErrorCode, name = ''): Row[] => [
  {
    refusal: 'missing folder',
    url: (at) => `${file(at, 'nowhere/x.db')}${name}`,
    code: coded('INVALID_CONFIG'),
    says: /the folder of the file does not exist: create it, or correct the path/,
    cli: noFile,
  },
  {
    refusal: 'read-only folder',
    needs: '/sys',
    url: () => `sqlite:/sys/x.db${name}`,
    code: coded('INVALID_CONFIG'),
    says: /may not use the file or its folder|read-only/,
    cli: noFile,
  },
  {
    refusal: 'file without permission',
    needs: '/sys',
    url: () => `sqlite:/sys/kernel/notes${name}`,
    code: coded('INVALID_CONFIG'),
    says: /check their owner and mode|read-only/,
  },
  {
    refusal: 'folder in place of the file',
    url: (at) => `${file(at, 'folder')}${name}`,
    code: coded('INVALID_CONFIG'),
    says: /the path is a folder: give the path of a file/,
  },
  {
    refusal: 'not a database',
    url: (at) => `${file(at, 'words.txt')}${name}`,
    code: 'STORE_UNSAFE',
    says: /not a SQLite database and was not changed: choose another path/,
  },
  {
    refusal: 'database of another application',
    url: (at) => `${file(at, 'other.db')}${name}`,
    code: 'STORE_UNSAFE',
    says: /a database of another program and was not changed: choose another path/,
  },
  {
    refusal: 'newer schema',
    url: (at) => `${file(at, name === '' ? 'newer.db' : 'newer-mail.db')}${name}`,
    code: 'STORE_UNSAFE',
    says: /has schema 999, this version of Redrive supports up to \d+; the file was not changed: upgrade/,
  },
  {
    refusal: 'wrong URL',
    url: () => (name === '' ? 'sqlite://x.db' : 'sqlite:#a'),
    code: name === '' ? 'INVALID_INPUT' : 'INVALID_CONFIG',
    says: /sqlite:|path/,
  },
]

const storeCells: Cell[] = [
  ...rows('store', 'memory', [
    {
      refusal: 'unknown setting',
      url: () => 'memory:?maxItems=1',
      code: 'INVALID_INPUT',
      says: /has no settings/,
      cli: { code: 'INVALID_INPUT', says: /a memory: store exists only in its process/ },
    },
  ]),
  ...rows('store', 'sqlite', [
    ...badFiles((code) => code),
    {
      refusal: 'unknown setting',
      url: (at) => file(at, 'newer.db?busyTimeout=1'),
      code: 'INVALID_INPUT',
      says: /did you mean "busyTimeoutMs"\?/,
    },
  ]),
  ...rows('store', 'postgres', [
    {
      refusal: 'wrong password',
      needs: 'private postgres',
      url: (at) => at.strictPostgres('app:hunter2'),
      code: 'INVALID_CONFIG',
      says: /rejected the user or the password: correct the URL/,
    },
    {
      refusal: 'unknown database',
      needs: 'postgres',
      url: (at) => at.postgres.replace(/[^/]*$/, 'no_such_database'),
      code: 'INVALID_CONFIG',
      says: /the database does not exist: create it/,
    },
    {
      refusal: 'user without rights',
      needs: 'private postgres',
      url: (at) => `${at.strictPostgres('app:right')}?allowUnsafe=true`,
      code: 'INVALID_CONFIG',
      says: /lacks a privilege: grant it/,
    },
    {
      refusal: 'unsafe settings',
      needs: 'private postgres',
      url: (at) => at.strictPostgres('postgres'),
      code: 'STORE_UNSAFE',
      says: /fsync is off.*set "fsync = on".*\?allowUnsafe=true/s,
    },
    {
      refusal: 'no TLS on the server',
      needs: 'postgres',
      url: (at) => `${at.postgres}?sslmode=verify-full`,
      code: 'INVALID_CONFIG',
      says: /SSL/,
    },
    {
      refusal: 'newer schema',
      needs: 'postgres',
      url: (at) => `${at.postgres}?schema=${at.newerSchema}`,
      code: 'STORE_UNSAFE',
      says: /has version 999, but this Redrive supports up to \d+; the schema was left unchanged: upgrade/,
    },
    {
      refusal: 'schema of another application',
      needs: 'postgres',
      url: (at) => `${at.postgres}?schema=${at.otherSchema}`,
      code: 'STORE_UNSAFE',
      says: /contains other tables and was left unchanged: choose another/,
    },
    {
      refusal: 'connection refused',
      url: (at) => `postgres://app:hunter2@${at.nobody}/db`,
      code: 'STORE_UNAVAILABLE',
      says: /nothing listens there: start the server, or correct the URL/,
      away: true,
    },
    {
      refusal: 'wrong URL',
      url: () => 'postgres://local host/db',
      code: 'INVALID_CONFIG',
      says: /postgres:\/\/user@host:5432\/database/,
    },
    {
      refusal: 'unknown setting',
      url: (at) => `postgres://app:hunter2@${at.nobody}/db?shema=x`,
      code: 'INVALID_CONFIG',
      says: /did you mean "schema"\?/,
    },
  ]),
  ...rows('store', 'redis', [
    {
      refusal: 'wrong password',
      needs: 'private redis',
      url: (at) => at.strictRedis(':hunter2'),
      code: 'INVALID_CONFIG',
      says: /does not accept this user and password: correct the URL/,
    },
    {
      refusal: 'no password',
      needs: 'private redis',
      url: (at) => at.strictRedis('').replace('//@', '//'),
      code: 'INVALID_CONFIG',
      says: /requires a password: add it to the URL/,
    },
    {
      refusal: 'password where none is set',
      needs: 'redis',
      url: (at) => at.redis.replace('//', '//:hunter2@'),
      code: 'INVALID_CONFIG',
      says: /has no password: remove it from the URL|does not accept/,
    },
    {
      refusal: 'unknown database',
      needs: 'redis',
      url: (at) => `${at.redis}/9999`,
      code: 'INVALID_CONFIG',
      says: /no database of this number: correct the URL/,
    },
    {
      refusal: 'user without rights',
      needs: 'private redis',
      url: (at) => at.strictRedis('poor:right'),
      code: 'INVALID_CONFIG',
      says: /the user lacks permissions that a store needs/,
    },
    {
      refusal: 'unsafe settings',
      needs: 'private redis',
      url: (at) => at.strictRedis(':right'),
      code: 'STORE_UNSAFE',
      says: /appendonly is off, .*: set "appendonly yes".*\?allowVolatile=true/s,
    },
    {
      refusal: 'newer schema',
      needs: 'redis',
      url: (at) => `${at.redis}?prefix=${at.newerPrefix}`,
      code: 'STORE_UNSAFE',
      says: /written by a newer Redrive \(schema 999\): use that one, or another prefix/,
    },
    {
      refusal: 'connection refused',
      url: (at) => `redis://:hunter2@${at.nobody}`,
      code: 'STORE_UNAVAILABLE',
      says: /nothing listens there: start the server, or correct the URL/,
      away: true,
    },
    {
      refusal: 'wrong URL',
      url: () => 'redis://localhost/letters',
      code: 'INVALID_INPUT',
      says: /redis:\/\/user:password@localhost:6379\/0/,
    },
    {
      refusal: 'unknown setting',
      url: (at) => `redis://:hunter2@${at.nobody}?prefx=x`,
      code: 'INVALID_INPUT',
      says: /did you mean "prefix"\?/,
    },
  ]),
  ...rows('store', 'opensearch', [
    {
      refusal: 'wrong password (a proxy answers 401)',
      url: (at) => at.gate.replace('//', '//app:hunter2@'),
      code: 'INVALID_CONFIG',
      says: /the user or the password is wrong: correct the URL/,
    },
    {
      refusal: 'unsafe settings',
      needs: 'opensearch',
      url: (at) => `${at.opensearch}/${at.asyncIndex}`,
      code: 'STORE_UNSAFE',
      says: /translog\.durability async, which loses letters: set it to request/,
    },
    {
      refusal: 'newer schema',
      needs: 'opensearch',
      url: (at) => `${at.opensearch}/${at.newerIndex}`,
      code: 'STORE_UNSAFE',
      says: /by a newer version of Redrive: upgrade/,
    },
    {
      refusal: 'index of another application',
      needs: 'opensearch',
      url: (at) => `${at.opensearch}/${at.otherIndex}`,
      code: 'STORE_UNSAFE',
      says: /does not belong to Redrive: choose another prefix/,
    },
    {
      refusal: 'not OpenSearch',
      url: (at) => at.otherServer,
      code: 'STORE_UNSAFE',
      says: /OpenSearch 2 or later is needed/,
    },
    {
      refusal: 'connection refused',
      url: (at) => `opensearch://app:hunter2@${at.nobody}`,
      code: 'STORE_UNAVAILABLE',
      says: /cannot be reached: start it, or correct the URL/,
      away: true,
    },
    {
      refusal: 'wrong URL',
      url: () => 'opensearch:letters',
      code: 'INVALID_INPUT',
      says: /opensearch:\/\/host:9200\/prefix/,
    },
    {
      refusal: 'unknown setting',
      url: (at) => `opensearch://app:hunter2@${at.nobody}?replica=1`,
      code: 'INVALID_INPUT',
      says: /did you mean "replicas"\?/,
    },
  ]),
]

/** The spool and the search index of a queue. Only a queue opens them. */
const aroundCells: Cell[] = [
  ...rows('queue', 'search index', [
    {
      refusal: 'wrong URL',
      url: (at) => file(at, 'search.db'),
      options: () => ({ search: 'opensearch:letters' }),
      code: 'INVALID_INPUT',
      says: /opensearch:\/\/host:9200\/prefix/,
    },
    {
      refusal: 'newer schema of the store it follows',
      url: (at) => file(at, 'newer.db'),
      options: (at) => ({ search: `opensearch://app:hunter2@${at.nobody}` }),
      code: 'STORE_UNSAFE',
      says: /has schema 999/,
    },
  ]),
  ...rows('queue', 'spool', [
    {
      refusal: 'folder that cannot be created',
      url: (at) => file(at, 'spooled.db'),
      options: () => ({ spoolPath: '/dev/null/spool' }),
      code: 'INVALID_CONFIG',
      says: /set spoolPath to a folder that can be written to, or onStoreDown to 'fail'/,
    },
    {
      refusal: 'folder that cannot be created, with a search index',
      url: (at) => file(at, 'spooled.db'),
      options: (at) => ({ spoolPath: '/dev/null/spool', search: `opensearch://${at.nobody}` }),
      code: 'INVALID_CONFIG',
      says: /set spoolPath to a folder that can be written to, or onStoreDown to 'fail'/,
    },
    {
      refusal: 'folder that cannot be created, with a server',
      needs: 'postgres',
      url: (at) => `${at.postgres}?schema=${at.newerSchema}_fresh`,
      options: () => ({ spoolPath: '/dev/null/spool' }),
      code: 'INVALID_CONFIG',
      says: /set spoolPath to a folder that can be written to, or onStoreDown to 'fail'/,
    },
  ]),
]

const away = (url: (at: TestServers) => string): Row => ({
  refusal: 'connection refused',
  url,
  code: 'MAILBOX_UNAVAILABLE',
  says: /nothing listens there: start the server, or correct the URL/,
})

const wrongUrl = (url: string, says: RegExp): Row => ({
  refusal: 'wrong URL',
  url: () => url,
  code: 'INVALID_INPUT',
  says,
})

const mailboxCells: Cell[] = [
  ...rows('mailbox', 'memory', [
    {
      refusal: 'no name',
      url: () => 'memory:#',
      code: 'INVALID_INPUT',
      says: /name/,
    },
  ]),
  ...rows(
    'mailbox',
    'sqlite',
    badFiles((code) => (code === 'INVALID_CONFIG' ? 'MAILBOX_UNAVAILABLE' : code), '#a').filter(
      ({ refusal }) => refusal !== 'wrong URL',
    ),
  ),
  ...rows('mailbox', 'postgres', [
    {
      refusal: 'wrong password',
      needs: 'private postgres',
      url: (at) => `${at.strictPostgres('app:hunter2')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /rejected the user or the password/,
    },
    {
      refusal: 'unknown database',
      needs: 'postgres',
      url: (at) => `${at.postgres.replace(/[^/]*$/, 'no_such_database')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /the database does not exist: create it/,
    },
    {
      refusal: 'unsafe settings',
      needs: 'private postgres',
      url: (at) => `${at.strictPostgres('postgres')}#a`,
      code: 'STORE_UNSAFE',
      says: /fsync is off.*\?allowUnsafe=true/s,
    },
    {
      refusal: 'newer schema',
      needs: 'postgres',
      url: (at) => `${at.postgres}?schema=${at.newerMail}#a`,
      code: 'STORE_UNSAFE',
      says: /has version 999/,
    },
    {
      refusal: 'schema of another application',
      needs: 'postgres',
      url: (at) => `${at.postgres}?schema=${at.otherSchema}#a`,
      code: 'STORE_UNSAFE',
      says: /contains other tables/,
    },
    away((at) => `postgres://app:hunter2@${at.nobody}/db#a`),
    {
      ...wrongUrl('postgres://local host/db#a', /postgres:\/\/user@host/),
      code: 'INVALID_CONFIG',
    },
  ]),
  ...rows('mailbox', 'redis', [
    {
      refusal: 'wrong password',
      needs: 'private redis',
      url: (at) => `${at.strictRedis(':hunter2')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /does not accept this user and password/,
    },
    {
      refusal: 'unknown database',
      needs: 'redis',
      url: (at) => `${at.redis}/9999#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /no database of this number/,
    },
    {
      refusal: 'unsafe settings',
      needs: 'private redis',
      url: (at) => `${at.strictRedis(':right')}#a`,
      code: 'STORE_UNSAFE',
      says: /appendonly is off.*\?allowVolatile=true/s,
    },
    {
      refusal: 'newer schema',
      needs: 'redis',
      url: (at) => `${at.redis}?prefix=${at.newerPrefix}#a`,
      code: 'STORE_UNSAFE',
      says: /written by a newer Redrive/,
    },
    away((at) => `redis://:hunter2@${at.nobody}#a`),
    wrongUrl('redis://localhost/letters#a', /redis:\/\/user:password@localhost/),
  ]),
  ...rows('mailbox', 'rabbitmq', [
    {
      refusal: 'wrong password',
      needs: 'rabbitmq',
      url: (at) => `${at.rabbitmq.replace(/\/\/.*@/, '//guest:hunter2@')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /ACCESS-REFUSED|password/,
    },
    {
      refusal: 'unknown virtual host',
      needs: 'rabbitmq',
      url: (at) => `${at.rabbitmq.replace(/(\/\/[^/]*).*/, '$1')}/no_such_host#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /^rabbitmq /,
    },
    {
      refusal: 'queue with other settings',
      needs: 'rabbitmq',
      url: (at) => `${at.rabbitmq}#${at.otherQueue}`,
      code: 'INVALID_CONFIG',
      says: /queue/,
    },
    away((at) => `amqp://app:hunter2@${at.nobody}#a`),
    wrongUrl('amqp:nowhere#a', /amqp:\/\/user:password@localhost/),
  ]),
  ...rows('mailbox', 'nats', [
    wrongUrl('nats://app@#a', /a NATS URL/),
    {
      refusal: 'wrong password',
      needs: 'private nats',
      url: (at) => `${at.strictNats.replace('//', '//app:hunter2@')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /nats/,
    },
    {
      refusal: 'no JetStream',
      needs: 'private nats',
      url: (at) => `${at.natsWithoutStreams}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /JetStream/,
    },
    {
      refusal: 'more copies than servers',
      needs: 'nats',
      url: (at) => `${at.nats}?replicas=5#${at.otherQueue}`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /nats/,
    },
    away((at) => `nats://app:hunter2@${at.nobody}#a`),
  ]),
  ...rows('mailbox', 'sqs', [
    wrongUrl('sqs://localhost/a/b#a', /an SQS URL/),
    away((at) => `sqs://${at.nobody}?region=us-east-1#a`),
  ]),
  ...rows('mailbox', 'kafka', [
    wrongUrl('kafka://app@#a', /a Kafka URL/),
    {
      refusal: 'password on a server without passwords',
      needs: 'kafka',
      url: (at) => `${at.kafka.replace('//', '//app:hunter2@')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /kafka/,
    },
    {
      refusal: 'more copies than brokers',
      needs: 'kafka',
      url: (at) => `${at.kafka}?replicas=99#${at.otherQueue}`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /kafka/,
    },
    {
      ...away((at) => `kafka://app:hunter2@${at.nobody}#a`),
      says: /kafka/,
    },
  ]),
]

const tapCells: Cell[] = [
  ...rows('tap', 'rabbitmq', [
    {
      refusal: 'wrong password',
      needs: 'rabbitmq',
      url: (at) => `${at.rabbitmq.replace(/\/\/.*@/, '//guest:hunter2@')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /ACCESS-REFUSED|password/,
    },
    {
      refusal: 'unknown queue',
      needs: 'rabbitmq',
      url: (at) => `${at.rabbitmq}#no_such_queue`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /no_such_queue/,
    },
    away((at) => `amqp://app:hunter2@${at.nobody}#a`),
  ]),
  ...rows('tap', 'nats', [
    {
      refusal: 'wrong password',
      needs: 'private nats',
      url: (at) => `${at.strictNats.replace('//', '//app:hunter2@')}#a`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /nats/,
    },
    {
      refusal: 'unknown stream',
      needs: 'nats',
      url: (at) => `${at.nats}#no_such_stream`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /nats/,
    },
    away((at) => `nats://app:hunter2@${at.nobody}#a`),
  ]),
  ...rows('tap', 'sqs', [
    {
      refusal: 'unknown queue',
      url: (at) => `${at.sqs}/no_such_queue?region=us-east-1`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /the queue does not exist/,
    },
    away((at) => `sqs://${at.nobody}/a?region=us-east-1`),
  ]),
  ...rows('tap', 'kafka', [
    {
      refusal: 'unknown topic',
      needs: 'kafka',
      url: (at) => `${at.kafka}#no_such_topic`,
      code: 'MAILBOX_UNAVAILABLE',
      says: /no_such_topic|not there/,
    },
    { ...away((at) => `kafka://app:hunter2@${at.nobody}#a`), says: /kafka/ },
  ]),
]

export const cells: readonly Cell[] = [...storeCells, ...aroundCells, ...mailboxCells, ...tapCells]

const noServer = 'there is no server'
const noSchema = 'Redrive keeps no schema of its own there'
const noUnsafe = 'it has no setting that a mailbox checks at open'

/** Refusals without a cell. */
export const noCells: readonly NoCell[] = [
  ...['wrong password', 'unsafe settings', 'newer schema', 'connection refused'].flatMap(
    (refusal) => [
      { driver: 'memory store', refusal, why: 'memory has no settings' },
      { driver: 'memory mailbox', refusal, why: 'memory has no settings' },
    ],
  ),
  ...['wrong password', 'connection refused'].flatMap((refusal) => [
    { driver: 'sqlite store', refusal, why: noServer },
    { driver: 'sqlite mailbox', refusal, why: noServer },
  ]),
  {
    driver: 'sqlite store, sqlite mailbox',
    refusal: 'unsafe settings',
    why: 'an old SQLite comes with an old Node: test/backends/sqlite/database.test.ts',
  },
  {
    driver: 'opensearch store',
    refusal: 'wrong password (of the server itself)',
    why: 'the server runs without its security plugin, which asks for passwords; a proxy that answers 401 stands in',
  },
  {
    driver: 'opensearch search index',
    refusal: 'connection refused',
    why: 'a queue opens without its index, and its health names the problem',
  },
  ...['rabbitmq', 'nats', 'sqs', 'kafka'].flatMap((kind) => [
    { driver: `${kind} mailbox`, refusal: 'newer schema', why: noSchema },
    { driver: `${kind} mailbox`, refusal: 'unsafe settings', why: noUnsafe },
  ]),
  {
    driver: 'sqs mailbox',
    refusal: 'wrong password',
    why: 'the emulator accepts any credentials',
  },
]

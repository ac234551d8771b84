// The servers and files that refuse the opens of the exit matrix: servers with passwords and unsafe
// settings, files and schemas of a newer Redrive.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import amqplib from 'amqplib'
import { startFauxqs } from 'fauxqs'
import { Client } from 'pg'
import { createClient } from 'redis'
import { requestNats, natsCommand, natsUrl } from '../../scripts/servers/nats.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { begin, type PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privatePostgres, privateRedis } from '../servers/private.ts'
import { backend, freshName } from '../servers/servers.ts'

/** What a cell of the matrix needs; `missing` has the reason if it is unavailable. */
export const missing: Readonly<Record<string, string | undefined>> = {
  postgres: backend('postgres').missing,
  redis: backend('redis').missing,
  opensearch: backend('opensearch').missing,
  rabbitmq: backend('rabbitmq').missing,
  nats: backend('nats').missing,
  kafka: backend('kafka').missing,
  'private postgres': lacksPrivate.postgres(),
  'private redis': lacksPrivate.redis(),
  'private nats': lacksPrivate.nats(),
  '/sys': process.platform === 'linux' ? undefined : 'only Linux has /sys',
}

/** URLs by name. Those of unavailable servers are empty. */
export interface TestServers {
  folder: string
  /** A port that nothing listens on. */
  nobody: string
  postgres: string
  /** A schema of each kind on the shared Postgres. */
  newerSchema: string
  newerMail: string
  otherSchema: string
  /** With the role `app`, whose password is `right`, and `fsync` off. */
  strictPostgres: (user: string) => string
  redis: string
  newerPrefix: string
  /** With the password `right` and without an append-only file. The user `poor` may only `PING`. */
  strictRedis: (user: string) => string
  opensearch: string
  newerIndex: string
  otherIndex: string
  asyncIndex: string
  /** Answers 401 to everything, like a proxy with passwords before OpenSearch. */
  gate: string
  /** An HTTP server that is not OpenSearch. */
  otherServer: string
  rabbitmq: string
  /** The name of a queue with other arguments than a mailbox. */
  otherQueue: string
  nats: string
  strictNats: string
  natsWithoutStreams: string
  sqs: string
  kafka: string
  clear: () => Promise<void>
}

export async function prepareServers(folder: string): Promise<TestServers> {
  const closing: (() => unknown)[] = []
  const given = <T>(lacks: string | undefined, make: () => Promise<T>): Promise<T | undefined> =>
    lacks === undefined ? make() : Promise.resolve(undefined)
  const [postgres, redis, strictNats, bareNats, sqs, gate, otherServer] = await Promise.all([
    given(lacksPrivate.postgres(), strictPostgres),
    given(lacksPrivate.redis(), strictRedis),
    given(lacksPrivate.nats(), () => natsWith(['-js', '--user', 'app', '--pass', 'right'])),
    given(lacksPrivate.nats(), () => natsWith([])),
    startFauxqs({ port: 0, logger: false }),
    startHttpServer(401, '{"error":"no"}'),
    startHttpServer(200, '{"hello":"world"}'),
  ])
  const name = freshName()
  const shared = {
    postgres: backend('postgres').url,
    redis: backend('redis').url,
    opensearch: backend('opensearch').url.replace('http:', 'opensearch:'),
    rabbitmq: backend('rabbitmq').url,
    nats: backend('nats').url,
    kafka: backend('kafka').url,
  }
  closing.push(
    () => postgres?.remove(),
    () => redis?.remove(),
    () => strictNats?.remove(),
    () => bareNats?.remove(),
    () => sqs.stop(),
    () => gate.server.close(),
    () => otherServer.server.close(),
  )
  await createFiles(folder)
  if (shared.postgres) closing.push(...(await createSchemas(shared.postgres, name)))
  if (shared.redis) closing.push(await createNewerKeys(shared.redis, name))
  if (shared.opensearch) closing.push(await createIndices(backend('opensearch').url, name))
  if (shared.rabbitmq) closing.push(await createOtherQueue(shared.rabbitmq, name))
  const withLogin = (server: PrivateServer | undefined) => (user: string) =>
    (server?.url ?? '').replace(/\/\/(postgres@)?/, `//${user}@`)
  return {
    folder,
    ...shared,
    kafka: `kafka://${shared.kafka}`,
    nobody: '127.0.0.1:1',
    newerSchema: `${name}_newer`,
    newerMail: `${name}_mail`,
    otherSchema: `${name}_other`,
    strictPostgres: withLogin(postgres),
    newerPrefix: `${name}_newer`,
    strictRedis: withLogin(redis),
    newerIndex: `${name}_newer`,
    otherIndex: `${name}_other`,
    asyncIndex: `${name}_async`,
    gate: gate.url,
    otherServer: otherServer.url,
    otherQueue: `${name}.other`,
    strictNats: strictNats?.url ?? '',
    natsWithoutStreams: bareNats?.url ?? '',
    sqs: `sqs://127.0.0.1:${sqs.port}`,
    clear: async () => {
      for (const close of closing.toReversed()) await close()
    },
  }
}

async function strictPostgres(): Promise<PrivateServer> {
  const server = await privatePostgres({ fsync: 'off' })
  await onPostgres(server.url, async (ask) => {
    await ask("create role app login password 'right'")
    const [row] = await ask('show data_directory')
    const rules = join(String(Object.values(row as object)[0]), 'pg_hba.conf')
    const login = 'host all app 127.0.0.1/32 scram-sha-256\n'
    writeFileSync(rules, login + readFileSync(rules, 'utf8'))
    await ask('select pg_reload_conf()')
  })
  return server
}

async function onPostgres(
  url: string,
  work: (ask: (sql: string) => Promise<unknown[]>) => Promise<void>,
): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await work(async (sql) => (await client.query(sql)).rows as unknown[])
  } finally {
    await client.end()
  }
}

async function strictRedis(): Promise<PrivateServer> {
  const server = await privateRedis({ appendonly: 'no' })
  await onRedis(server.url, async (ask) => {
    await ask('ACL', 'SETUSER', 'poor', 'on', '>right', '+ping')
    await ask('CONFIG', 'SET', 'requirepass', 'right')
  })
  return server
}

async function onRedis(
  url: string,
  work: (ask: (...args: string[]) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  try {
    await work((...args) => client.sendCommand(args))
  } finally {
    client.destroy()
  }
}

function natsWith(args: readonly string[]): Promise<PrivateServer> {
  return begin({
    ports: 2,
    prepare: (folder) => mkdirSync(folder),
    command: (ports, folder) => {
      const usual = natsCommand(ports, folder)
      const listening = usual.args.filter((arg) => arg !== '-js')
      return { ...usual, args: [...listening, ...args] }
    },
    isOurs: async ([port, monitor]) =>
      ((await requestNats(monitor!, 'varz')) as { port: number }).port === port,
    url: natsUrl,
    signals: { smart: 'SIGTERM', fast: 'SIGTERM', immediate: 'SIGTERM' },
  })
}

async function startHttpServer(
  status: number,
  body: string,
): Promise<{ url: string; server: Server }> {
  const server = createServer((_, answer) => {
    answer.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `opensearch://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

/**
 * `newer.db` and `newer-mail.db` of a newer Redrive, `other.db` of another application,
 * `words.txt`, and the folder `folder`.
 */
async function createFiles(folder: string): Promise<void> {
  const store = await connect(`sqlite:${join(folder, 'newer.db')}`, systemClock)
  await store.open()
  await store.close()
  const mailbox = await openMailbox(`sqlite:${join(folder, 'newer-mail.db')}#a`)
  await mailbox.close()
  for (const [file, sql] of [
    ['newer.db', `UPDATE meta SET value = '999' WHERE key = 'schema'`],
    ['newer-mail.db', `UPDATE mail_meta SET value = '999' WHERE key = 'schema'`],
    ['other.db', 'CREATE TABLE orders (id INTEGER)'],
  ] as const) {
    const database = new DatabaseSync(join(folder, file))
    database.exec(sql)
    database.close()
  }
  writeFileSync(
    join(folder, 'words.txt'),
    'This is not a database, but a plain text file of some length.\n',
  )
  mkdirSync(join(folder, 'folder'))
}

async function createSchemas(url: string, name: string): Promise<(() => Promise<void>)[]> {
  await onPostgres(url, async (ask) => {
    for (const [schema, key] of [
      ['newer', 'schema'],
      ['mail', 'mail'],
    ]) {
      await ask(`create schema ${name}_${schema}`)
      await ask(`create table ${name}_${schema}.meta (key text primary key, value text not null)`)
      await ask(`insert into ${name}_${schema}.meta values ('${key}', '999')`)
    }
    await ask(`create schema ${name}_other`)
    await ask(`create table ${name}_other.orders (id int)`)
  })
  return ['newer', 'mail', 'other'].map((schema) => async () => {
    await onPostgres(url, async (ask) => {
      await ask(`drop schema ${name}_${schema} cascade`)
    })
  })
}

async function createNewerKeys(url: string, name: string): Promise<() => Promise<void>> {
  const keys = [`{${name}_newer}:meta`, `{${name}_newer/a}:meta`]
  await onRedis(url, async (ask) => {
    for (const key of keys) await ask('HSET', key, 'schema', '999')
  })
  return () =>
    onRedis(url, async (ask) => {
      await ask('DEL', ...keys)
    })
}

async function createIndices(url: string, name: string): Promise<() => Promise<void>> {
  const make = async (prefix: string, body: object): Promise<void> => {
    const answer = await fetch(new URL(`${prefix}-letters`, url), {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(await answer.text())
  }
  await make(`${name}_newer`, { mappings: { _meta: { redrive: 999 } } })
  await make(`${name}_other`, {})
  await make(`${name}_async`, {
    mappings: { _meta: { redrive: 1 } },
    settings: { 'index.translog.durability': 'async' },
  })
  return async () => {
    await fetch(new URL(`${name}*?expand_wildcards=all`, url), { method: 'DELETE' })
  }
}

async function createOtherQueue(url: string, name: string): Promise<() => Promise<void>> {
  const on = async (work: (channel: amqplib.Channel) => Promise<unknown>): Promise<void> => {
    const connection = await amqplib.connect(url)
    try {
      await work(await connection.createChannel())
    } finally {
      await connection.close()
    }
  }
  await on((channel) => channel.assertQueue(`${name}.other`, { durable: false }))
  return () => on((channel) => channel.deleteQueue(`${name}.other`))
}

// Private servers whose processes are traced while a store writes to them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { createClient } from 'redis'
import { childrenOf } from '../../scripts/servers/machine.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privatePostgres, privateRedis } from '../servers/private.ts'

/** Sends strings to the server on a connection of its own. */
export interface Sender {
  readonly send: (text: string) => Promise<unknown>
  readonly end: () => Promise<unknown>
}

export interface TracedServer {
  readonly name: string
  readonly lacks: string | undefined
  readonly begin: () => Promise<PrivateServer>
  /** The same server, configured to acknowledge before it has synced. */
  readonly beginUnsynced: () => Promise<PrivateServer>
  /** The file that makes a write durable. */
  readonly log: RegExp
  readonly openSender: (server: PrivateServer) => Promise<Sender>
  readonly pids: (server: PrivateServer) => Promise<number[]>
  /** Writes strings without the store. */
  readonly openWriter: (server: PrivateServer) => Promise<Sender>
}

async function postgresClient({ url }: PrivateServer): Promise<Client> {
  const client = new Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  return client
}

async function redisClient({ url }: PrivateServer) {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  return client
}

const postgres: TracedServer = {
  name: 'postgres',
  lacks: lacksPrivate.postgres(),
  begin: () => privatePostgres(),
  beginUnsynced: () => privatePostgres({ synchronous_commit: 'off' }),
  log: /\/pg_wal\/[0-9A-F]{24}$/,
  openSender: async (server) => {
    const client = await postgresClient(server)
    return { send: (text) => client.query(`select '${text}'`), end: () => client.end() }
  },
  pids: async (server) => {
    const client = await postgresClient(server)
    const { rows } = await client.query<{ data_directory: string }>('show data_directory')
    await client.end()
    const file = readFileSync(join(rows[0]!.data_directory, 'postmaster.pid'), 'utf8')
    const pid = Number(file.split('\n')[0])
    return [pid, ...childrenOf(pid)]
  },
  openWriter: async (server) => {
    const client = await postgresClient(server)
    await client.query('create table if not exists plain (text text)')
    return {
      send: (text) => client.query('insert into plain values ($1)', [text]),
      end: () => client.end(),
    }
  },
}

const redis: TracedServer = {
  name: 'redis',
  lacks: lacksPrivate.redis(),
  begin: () => privateRedis(),
  beginUnsynced: () => privateRedis({ appendfsync: 'everysec' }),
  log: /\/appendonly\.aof\.\d+\.incr\.aof$/,
  openSender: async (server) => {
    const client = await redisClient(server)
    return { send: (text) => client.echo(text), end: async () => client.destroy() }
  },
  pids: async (server) => {
    const client = await redisClient(server)
    const info = await client.info('server')
    client.destroy()
    return [Number(/process_id:(\d+)/.exec(info)![1])]
  },
  openWriter: async (server) => {
    const client = await redisClient(server)
    return { send: (text) => client.rPush('plain', text), end: async () => client.destroy() }
  },
}

export const tracedServers: readonly TracedServer[] = [postgres, redis]

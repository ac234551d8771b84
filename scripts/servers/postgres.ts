import { chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import {
  dataHome,
  findProgram,
  launch,
  postgresAccount,
  run,
  type Account,
  type Command,
} from './machine.ts'
import type { Server } from './server.ts'

/** The program folders per version on Debian and Red Hat, newest first. */
function versionFolders(): string[] {
  const below = (folder: string, prefix: string): string[] =>
    existsSync(folder)
      ? readdirSync(folder)
          .filter((name) => name.startsWith(prefix) && Number(name.slice(prefix.length)) > 0)
          .sort((a, b) => Number(b.slice(prefix.length)) - Number(a.slice(prefix.length)))
          .map((name) => join(folder, name, 'bin'))
      : []
  return [...below('/usr/lib/postgresql', ''), ...below('/usr', 'pgsql-')]
}

const postgresProgram = (name: string): string | undefined => findProgram(name, versionFolders())

export const lacksPostgres = (): string | undefined =>
  postgresProgram('initdb') ? undefined : 'PostgreSQL is not installed'

/** Fully durable: commits are on the disk. */
const settings: Readonly<Record<string, string>> = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_connections: '200',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
}

/**
 * The folder of an empty database, created once per version and then copied: initdb takes seconds.
 */
function template(account: Account): string {
  const version = /\d+/.exec(run(postgresProgram('postgres')!, ['--version']))![0]
  const ready = join(dataHome(), `postgres-${version}-template`)
  if (existsSync(ready)) return ready
  const raw = `${ready}.${process.pid}`
  emptyFolder(raw, account)
  const options = ['-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C', '--no-sync']
  run(postgresProgram('initdb')!, ['-D', raw, ...options], account)
  try {
    renameSync(raw, ready)
  } catch {
    rmSync(raw, { recursive: true, force: true })
  }
  return ready
}

function emptyFolder(folder: string, account: Account): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid!)
}

/** Creates the data folder of a new, empty database. */
export function createDatabase(folder: string): void {
  const account = postgresAccount()
  const from = template(account)
  emptyFolder(folder, account)
  run('cp', ['-R', '-p', `${from}/.`, folder], account)
}

export function postgresCommand(
  port: number,
  folder: string,
  more: Readonly<Record<string, string>> = {},
): Command {
  const all = { ...settings, ...more, port: String(port) }
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const file = postgresProgram('postgres')!
  return { file, args: ['-D', folder, ...args], folder, account: postgresAccount() }
}

export const postgresUrl = (port: number): string =>
  `postgres://postgres@127.0.0.1:${port}/postgres`

export async function isPostgresReady(port: number): Promise<boolean> {
  const client = new Client({
    connectionString: postgresUrl(port),
    connectionTimeoutMillis: 5000,
    query_timeout: 5000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } finally {
    await client.end().catch(() => {})
  }
}

export const postgres: Server = {
  name: 'postgres',
  variable: 'REDRIVE_TEST_POSTGRES_URL',
  ports: [25432],
  after: [],
  packages: ['postgresql'],
  lacks: lacksPostgres,
  start: ({ folder, log, ports }) => {
    const data = join(folder, 'data')
    createDatabase(data)
    return [launch(postgresCommand(ports[0]!, data), log)]
  },
  // "Fast": sessions are ended, then a checkpoint is written.
  stopSignal: 'SIGINT',
  ready: ([port]) => isPostgresReady(port!),
  seconds: 30,
  url: ([port]) => postgresUrl(port!),
}

import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock, type Clock } from '../clock/clock.ts'
import { connect } from '../connect/store.ts'
import { RedriveError } from '../errors.ts'
import type { QueueOptions } from '../options/options.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import type { Store } from '../store.ts'
import { sqliteFileOf } from '../backends/url.ts'

/** Options that every command takes. */
export interface GlobalOptions {
  store?: string
  json?: boolean
}

/** Options of commands that read a configuration. */
export interface ConfigOptions extends GlobalOptions {
  config?: string
  set?: string[]
}

export interface Opened {
  url: string
  /** Problems of the configuration that only concern workers, as lines. */
  configProblems: readonly string[]
  store: Store
  clock: Clock
}

export interface OpenedQueue extends Opened {
  dlq: DeadLetterQueue
}

const defaultStore = 'sqlite:redrive.db'

/** The store of --store, REDRIVE_STORE or the configuration. Default: redrive.db in this folder. */
async function resolveStore({
  store,
}: GlobalOptions): Promise<Pick<Opened, 'url' | 'configProblems'>> {
  const url = store ?? process.env['REDRIVE_STORE']
  // An empty value is almost certainly an unset variable; the default store could be the wrong one.
  if (url === '')
    throw new RedriveError(
      'INVALID_INPUT',
      `${store === undefined ? 'REDRIVE_STORE' : '--store'} is empty: name a store such as sqlite:redrive.db, or remove it`,
    )
  if (url !== undefined) return { url, configProblems: [] }
  const isConfigured = ['REDRIVE_CONFIG', 'REDRIVE_STORE_FILE'].some((name) => name in process.env)
  if (!isConfigured && !existsSync('redrive.yaml')) return { url: defaultStore, configProblems: [] }
  const [{ examineConfig }, { invalidConfig, formatProblem }, { readTextFile }] = await Promise.all(
    [
      import('../config/load.ts'),
      import('../config/problems.ts'),
      import('../config/read-file.ts'),
    ],
  )
  const examined = examineConfig({ env: process.env, read: readTextFile })
  if ('config' in examined) return { url: examined.config.store, configProblems: [] }
  if (examined.store === undefined) throw invalidConfig(examined.problems)
  return { url: examined.store, configProblems: examined.problems.map(formatProblem) }
}

/** The file of a store that is a file. */
export function fileOf(url: string): string | undefined {
  return sqliteFileOf(url) || undefined
}

/** The name of a store: the absolute path of its file, or its URL without secrets. */
export function nameOf(url: string): string {
  const file = fileOf(url)
  if (file !== undefined) return `sqlite:${resolve(file)}`
  // URL cannot parse several hosts.
  if (!URL.canParse(url)) return url.replace(/^([a-z+]+:\/\/)[^/]*@/i, '$1')
  const parsed = new URL(url)
  parsed.username = ''
  parsed.password = ''
  const keys = Array.from(parsed.searchParams.keys())
  for (const key of keys.filter((name) => /pass|secret|token|key/i.test(name)))
    parsed.searchParams.delete(key)
  return parsed.href
}

/** A store URL for output: a file as it was given, a server without secrets. */
export function hideSecrets(url: string): string {
  return fileOf(url) === undefined ? nameOf(url) : url
}

/**
 * Opens the store for one command. A command that only reads never creates a store: a missing one
 * is an error.
 */
export async function withStore<T>(
  options: GlobalOptions,
  use: (opened: Opened) => Promise<T>,
  { create = false } = {},
): Promise<T> {
  const opened = await findStore(options, create)
  try {
    await opened.store.open()
    return await use(opened)
  } finally {
    await opened.store.close()
  }
}

/**
 * Opens a queue on the store, for commands that need more than the store. Loading the queue takes
 * longer.
 */
export async function withQueue<T>(
  options: GlobalOptions,
  use: (opened: OpenedQueue) => Promise<T>,
  queueOptions: () => Promise<QueueOptions> | undefined = () => undefined,
): Promise<T> {
  const opened = await findStore(options, false)
  const extra = await queueOptions()
  const { DeadLetterQueue } = await import('../queue/queue.ts')
  const own = { clock: opened.clock, redeliver: false, alerts: false } as const
  const dlq = await DeadLetterQueue.open(opened.store, { ...extra, ...own })
  try {
    return await use({ ...opened, dlq })
  } finally {
    await dlq.close()
  }
}

/** The store, not yet open. */
async function findStore(options: GlobalOptions, create: boolean): Promise<Opened> {
  const { url, configProblems } = await resolveStore(options)
  if (/^memory:/i.test(url))
    throw new RedriveError(
      'INVALID_INPUT',
      'a memory: store exists only in its process: use a durable store, such as --store sqlite:redrive.db',
    )
  const file = fileOf(url)
  if (!create && file !== undefined && !existsSync(file))
    throw new RedriveError(
      'STORE_UNAVAILABLE',
      `the store file ${file} does not exist: name the right one with --store sqlite:FILE or REDRIVE_STORE, or start the worker that creates it (redrive demo creates an example)`,
    )
  // SQLite treats an empty file as a new database, and would create a store in it.
  if (!create && file !== undefined && isEmptyFile(file))
    throw new RedriveError(
      'STORE_UNAVAILABLE',
      `the file ${file} is empty and contains no store: name the right one with --store sqlite:FILE or REDRIVE_STORE, or start the worker that creates it`,
    )
  return { url, configProblems, store: await connect(url, systemClock), clock: systemClock }
}

function isEmptyFile(file: string): boolean {
  const stats = statSync(file)
  return stats.isFile() && stats.size === 0
}

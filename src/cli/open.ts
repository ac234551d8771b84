import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { actAs, type AuditCaller } from '../admin/audit/caller.ts'
import { systemClock, type Clock } from '../clock/clock.ts'
import { connect, withEncryption } from '../connect/store.ts'
import { RedriveError } from '../errors.ts'
import type { QueueOptions } from '../options/options.ts'
import { isKeyProvider, provideKeys } from '../check/encryption-keys.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import { readStoreLetters } from './letter-reader.ts'
import type { LetterReader, QueueAccess } from './queue-access.ts'
import { findServer, refuseName, refuseServer, type TargetOptions } from './remote/server.ts'
import type { LetterQuery } from '../letter/query.ts'
import type { Store } from '../store.ts'
import { sqliteFileOf } from '../backends/url.ts'
import { userName } from './user-name.ts'
import { terminal } from './terminal.ts'

/** Options that every command takes. */
export interface GlobalOptions extends TargetOptions {
  json?: boolean
  /** Each JSON value on one line. Implies `json`. */
  jsonl?: boolean
}

/** Options of commands that read a configuration. */
export interface ConfigOptions extends GlobalOptions {
  config?: string
  set?: string[]
}

/** The store itself, for commands that cannot use a server. */
export interface Opened {
  url: string
  /** Problems of the configuration that only concern workers, as lines. */
  configProblems: readonly string[]
  store: Store
  clock: Clock
}

/** A store, or the letters of a server. */
export interface OpenedLetters {
  letters: LetterReader
  clock: Clock
}

/** A queue on a store, or the one of a server. */
export interface OpenedQueue extends OpenedLetters {
  dlq: QueueAccess
}

const defaultStore = 'sqlite:redrive.db'

/** The store of --store, REDRIVE_STORE or the configuration. Default: redrive.db in this folder. */
async function resolveStore({
  store,
}: GlobalOptions): Promise<Pick<Opened, 'url' | 'configProblems'>> {
  const url = store ?? terminal.env['REDRIVE_STORE']
  // An empty value is almost certainly an unset variable; the default store could be the wrong one.
  if (url === '')
    throw new RedriveError(
      'INVALID_INPUT',
      `${store === undefined ? 'REDRIVE_STORE' : '--store'} is empty: name a store such as sqlite:redrive.db, or remove it`,
    )
  if (url !== undefined) return { url, configProblems: [] }
  const isConfigured = ['REDRIVE_CONFIG', 'REDRIVE_STORE_FILE'].some((name) => name in terminal.env)
  if (!isConfigured && !existsSync('redrive.yaml')) return { url: defaultStore, configProblems: [] }
  const [{ examineConfig }, { invalidConfig, formatProblem }, { readTextFile }] = await Promise.all(
    [
      import('../config/load.ts'),
      import('../config/problems.ts'),
      import('../config/read-file.ts'),
    ],
  )
  const examined = examineConfig({ env: terminal.env, read: readTextFile })
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
 * Opens the store for a command that needs the store itself. A command that only reads never
 * creates a store: a missing one is an error.
 */
export async function withStore<T>(
  command: string,
  options: GlobalOptions,
  use: (opened: Opened) => Promise<T>,
  { create = false, decrypt = true } = {},
): Promise<T> {
  refuseServer(options, command)
  return withLocalStore(options, use, { create, decrypt })
}

async function withLocalStore<T>(
  options: GlobalOptions,
  use: (opened: Opened) => Promise<T>,
  { create = false, decrypt = true } = {},
): Promise<T> {
  const found = await findStore(options, create)
  const opened = decrypt ? await withKeys(found, await readKeys()) : found
  try {
    await opened.store.open()
    return await actAs(cliCaller(), () => use(opened))
  } finally {
    await opened.store.close()
  }
}

/**
 * Opens the letters of a store or a server, for commands that only read letters. The queue is
 * loaded only to find the letters of merged groups.
 */
export async function withLetters<T>(
  options: GlobalOptions & { group?: string; reveal?: boolean },
  use: (opened: OpenedLetters) => Promise<T>,
): Promise<T> {
  const server = await findServer(options)
  if (server) {
    const { RemoteLetters } = await import('./remote/remote-letters.ts')
    return use({ letters: new RemoteLetters(server.client, options.reveal), clock: systemClock })
  }
  if (options.group !== undefined) return withQueue(options, use)
  return withLocalStore(options, ({ store, clock }) =>
    use({ letters: readStoreLetters(store), clock }),
  )
}

/** Opens a queue on a store, or the one of a server. Loading it takes longer than `withLetters`. */
export async function withQueue<T>(
  options: GlobalOptions & { by?: string },
  use: (opened: OpenedQueue) => Promise<T>,
  queueOptions: () => Promise<QueueOptions> | undefined = () => undefined,
): Promise<T> {
  const server = await findServer(options)
  if (!server)
    return withLocalQueue(
      options,
      ({ dlq, store, clock }) => {
        const letters = {
          ...readStoreLetters(store),
          find: (query: LetterQuery) => dlq.find(query),
        }
        return use({ dlq, letters, clock })
      },
      queueOptions,
    )
  refuseName(options)
  const [{ RemoteLetters }, { RemoteQueue }] = await Promise.all([
    import('./remote/remote-letters.ts'),
    import('./remote/remote-queue.ts'),
  ])
  const letters = new RemoteLetters(server.client)
  return use({ letters, dlq: new RemoteQueue(server.client, systemClock), clock: systemClock })
}

/** Opens a queue on the store, for commands that do what servers do not. */
export async function withStoreQueue<T>(
  command: string,
  options: GlobalOptions,
  use: (opened: Opened & { dlq: DeadLetterQueue }) => Promise<T>,
): Promise<T> {
  refuseServer(options, command)
  return withLocalQueue(options, use)
}

async function withLocalQueue<T>(
  options: GlobalOptions,
  use: (opened: Opened & { dlq: DeadLetterQueue }) => Promise<T>,
  queueOptions: () => Promise<QueueOptions> | undefined = () => undefined,
): Promise<T> {
  const found = await findStore(options, false)
  const { encryption, ...extra } = (await queueOptions()) ?? {}
  const opened = await withKeys(found, encryption ?? (await readKeys()))
  const { DeadLetterQueue } = await import('../queue/queue.ts')
  const own = { clock: opened.clock, redeliver: false, alerts: false } as const
  const dlq = await DeadLetterQueue.open(opened.store, { ...extra, ...own })
  try {
    return await actAs(cliCaller(), () => use({ ...opened, dlq }))
  } finally {
    await dlq.close()
  }
}

/** The caller in the audit log, for actions that take no name. */
function cliCaller(): AuditCaller {
  return { via: 'cli', actor: userName() }
}

type Keys = NonNullable<QueueOptions['encryption']>

/** The keys of the configuration. Undefined: it has none. */
async function readKeys(): Promise<Keys | undefined> {
  const isConfigured = Object.keys(terminal.env).some((name) =>
    /^REDRIVE_(CONFIG$|ENCRYPTION)/.test(name),
  )
  if (!isConfigured && !existsSync('redrive.yaml')) return undefined
  const [{ examineConfig }, { invalidConfig }, { readTextFile }] = await Promise.all([
    import('../config/load.ts'),
    import('../config/problems.ts'),
    import('../config/read-file.ts'),
  ])
  const examined = examineConfig({ env: terminal.env, read: readTextFile })
  if ('config' in examined) return examined.config.options.encryption
  // Other problems concern workers. Without its keys, a command would show every letter as corrupt.
  const problems = examined.problems.filter(({ key }) => key.startsWith('encryption'))
  if (problems.length > 0) throw invalidConfig(problems)
  return examined.options?.encryption
}

async function withKeys(opened: Opened, keys: Keys | undefined): Promise<Opened> {
  if (!keys) return opened
  const provider = isKeyProvider(keys) ? keys : provideKeys(keys)
  return { ...opened, store: await withEncryption(opened.store, provider) }
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

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock, type Clock } from '../clock.ts'
import { connect } from '../connect.ts'
import { RedriveError } from '../errors.ts'
import { DeadLetterQueue } from '../queue.ts'
import type { Store } from '../store.ts'

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
  store: Store
  dlq: DeadLetterQueue
  clock: Clock
}

const usualStore = 'sqlite:redrive.db'

/** The store that was asked for: by --store, by REDRIVE_STORE, by a configuration, or redrive.db in this folder. */
async function storeUrl({ store }: GlobalOptions): Promise<string> {
  const named = store ?? process.env['REDRIVE_STORE']
  if (named) return named
  if (!process.env['REDRIVE_CONFIG'] && !existsSync('redrive.yaml')) return usualStore
  const [{ loadConfig }, { readText }] = await Promise.all([
    import('../config/load.ts'),
    import('../config/read-text.ts'),
  ])
  return loadConfig({ env: process.env, read: readText }).store
}

/** The file of a store that is a file. */
export function fileOf(url: string): string | undefined {
  return /^sqlite:(?:\/\/(?=\/))?(.+)$/is.exec(url)?.[1]
}

/** What a store is called from now on: its file by the whole path, or its URL without secrets. */
export function nameOf(url: string): string {
  const file = fileOf(url)
  if (file !== undefined) return `sqlite:${resolve(file)}`
  if (!URL.canParse(url)) return url
  const parsed = new URL(url)
  parsed.username = ''
  parsed.password = ''
  const keys = Array.from(parsed.searchParams.keys())
  for (const key of keys.filter((name) => /pass|secret|token|key/i.test(name)))
    parsed.searchParams.delete(key)
  return parsed.href
}

/** A store as it is shown: a file as it was given, a server without secrets. */
export function shown(url: string): string {
  return fileOf(url) === undefined ? nameOf(url) : url
}

/**
 * Opens the store for the time of one command. Looking never makes a store: unless it may be created, one that is
 * not there is an error.
 */
export async function withStore<T>(
  options: GlobalOptions,
  use: (opened: Opened) => Promise<T>,
  { create = false } = {},
): Promise<T> {
  const url = await storeUrl(options)
  if (/^memory:/i.test(url))
    throw new RedriveError(
      'INVALID_INPUT',
      'a memory: store is gone with the process that made it: give a store that lasts, as in --store sqlite:redrive.db',
    )
  const file = fileOf(url)
  if (!create && file !== undefined && !existsSync(file))
    throw new RedriveError(
      'STORE_UNAVAILABLE',
      `there is no store file ${file}: give the right one with --store sqlite:FILE or in REDRIVE_STORE, or start the worker that makes it (redrive demo makes one to look at)`,
    )
  const store = await connect(url, systemClock)
  const dlq = await DeadLetterQueue.open(store, { clock: systemClock })
  try {
    return await use({ url, store, dlq, clock: systemClock })
  } finally {
    await dlq.close()
  }
}

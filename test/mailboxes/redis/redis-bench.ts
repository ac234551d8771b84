import { createClient, RESP_TYPES } from 'redis'
import { afterAll, expect } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { redisMailbox, type RedisMailboxOptions } from '../../../src/mailboxes/redis/redis.ts'
import { redisClusterPlace, redisPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { openMailboxBench } from '../bench.ts'

export const single = backend('redis')
export const cluster = backend('redis-cluster')

/**
 * One place for all benches of a test file, cleared once at its end: scanning all keys after each
 * test would be slow.
 */
function benches(url: string, place: Place): () => ReturnType<typeof openMailboxBench> {
  let count = 0
  afterAll(() => (count > 0 ? place.clear() : undefined))
  return () => {
    const prefix = `${place.name}-${(count += 1)}`
    return openMailboxBench({
      make: (name, resolver, more) => redisMailbox({ url, prefix, name, resolver, ...more }),
    })
  }
}

export const openRedisBench = benches(single.url, redisPlace(single.url))
export const openClusterBench = benches(cluster.url, redisClusterPlace(cluster.url))

/** The mailboxes of a test; `close` closes all of them. */
export interface Opened {
  make: (options: Partial<RedisMailboxOptions> & { url: string }) => Mailbox
  open: (options: Partial<RedisMailboxOptions> & { url: string }) => Promise<Mailbox>
  close: () => Promise<void>
}

export function openedMailboxes(): Opened {
  const all: Mailbox[] = []
  const make: Opened['make'] = (options) => {
    const mailbox = redisMailbox({ name: 'm', ...options })
    all.push(mailbox)
    return mailbox
  }
  return {
    make,
    open: async (options) => {
      const mailbox = make(options)
      await mailbox.open()
      return mailbox
    },
    close: async () => {
      await Promise.all(all.splice(0).map((mailbox) => mailbox.close()))
    },
  }
}

/** Sends a command directly to a server. Strings are returned as strings. */
export async function ask(url: string, ...command: (string | Buffer)[]): Promise<unknown> {
  const client = createClient({
    url,
    RESP: 2,
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: String } },
  })
  client.on('error', () => {})
  await client.connect()
  try {
    return await client.sendCommand(command)
  } finally {
    client.destroy()
  }
}

/**
 * Every message is in one of pending and hidden, and in everything else that must have it. Answers
 * how many there are.
 */
export async function expectSound(url: string, tag: string): Promise<number> {
  const range = async (key: string): Promise<string[]> =>
    ((await ask(url, 'ZRANGE', `${tag}:${key}`, '0', '-1')) as string[]).toSorted()
  const fields = async (key: string): Promise<string[]> =>
    ((await ask(url, 'HKEYS', `${tag}:${key}`)) as string[]).toSorted()
  const here = [...(await range('pending')), ...(await range('hidden'))].toSorted()
  expect(new Set(here).size).toBe(here.length)
  expect(await range('order')).toEqual(here)
  expect(await fields('state')).toEqual(here)
  expect(await fields('body')).toEqual(here)
  return here.length
}

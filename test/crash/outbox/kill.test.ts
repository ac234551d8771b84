import { spawn, type ChildProcess } from '../../processes.ts'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { readDeliveries } from '../../../src/observers/notify/delivery.ts'
import { takeOverMs } from '../../../src/observers/notify/outbox.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { postgresPlace, redisPlace } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { temporaryDirectory } from '../../stores/sqlite/sqlite-bench.ts'
import { aServer, closeServers } from '../../observers/notify/a-server.ts'
import { openPlace, type StorePlace } from './store-place.ts'

const postgres = backend('postgres')
const redis = backend('redis')

interface Opened {
  place: StorePlace
  clear: () => Promise<void>
}

const places: [name: string, missing: unknown, open: () => Promise<Opened>][] = [
  [
    'SQLite',
    undefined,
    async () => {
      const { path, clear } = await temporaryDirectory()
      return { place: { kind: 'sqlite', path: join(path, 'letters.db') }, clear }
    },
  ],
  [
    'Postgres',
    postgres.missing,
    async () => {
      const { name, clear } = postgresPlace(postgres.url)
      return { place: { kind: 'postgres', url: postgres.url, schema: name }, clear }
    },
  ],
  [
    'Redis',
    redis.missing,
    async () => {
      const { name, clear } = redisPlace(redis.url)
      return { place: { kind: 'redis', url: redis.url, prefix: name }, clear }
    },
  ],
]

const children: ChildProcess[] = []
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await closeServers()
})

/** Resolves with the signal or the code that ended the process. */
function start(...args: string[]): { child: ChildProcess; end: Promise<unknown> } {
  const program = join(import.meta.dirname, 'sender-process.ts')
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  children.push(child)
  return { child, end: once(child, 'close').then(([code, signal]) => signal ?? code) }
}

it.each(places.filter(([, missing]) => missing === undefined))(
  'on %s, a notification of a process that is killed before it records the answer is sent again with the same id',
  { timeout: 120_000 },
  async (_, _missing, open) => {
    const { place, clear } = await open()
    const store = openPlace(place)
    try {
      await store.open()
      await store.add([aLetter({ state: 'parked' })])
      const { url, requests, arrival } = await aServer()
      const args = [JSON.stringify(place), url]
      expect(await start(...args, '0', 'dies').end).toBe('SIGKILL')
      expect(requests).toHaveLength(1)
      const [sending] = await readDeliveries(store.records)
      expect(sending).toMatchObject({ state: 'sending', attempts: 1, target: 'hook' })

      const second = start(...args, String(takeOverMs), 'lives')
      await Promise.race([arrival(2), second.end])
      second.child.kill('SIGTERM')
      expect(await second.end).toBe(0)
      const [first, again] = requests.map(({ headers, text }) => ({
        id: headers['webhook-id'],
        text,
      }))
      expect(again).toEqual(first)
      expect(first!.id).toBe(sending!.id)
      expect(requests).toHaveLength(2)
      expect(await readDeliveries(store.records)).toMatchObject([
        { id: sending!.id, state: 'delivered', attempts: 2 },
      ])
    } finally {
      await store.close()
      await clear()
    }
  },
)

import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient, type Client } from '../../src/api/client.ts'
import type { FeedEvent } from '../../src/api/schemas/feed.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import { Tokens } from '../../src/server/tokens.ts'
import type { Store } from '../../src/store.ts'
import { plainEnv } from '../cli/run-cli.ts'
import { aFolder } from '../folders.ts'
import { spawn, type ChildProcess } from '../processes.ts'
import { atDepth } from '../depth.ts'
import { postgresPlace, redisPlace, type Place } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { waitFor } from '../wait-for.ts'

const main = join(import.meta.dirname, '../../src/cli/main.ts')
const limitMs = 120_000
const folder = aFolder()
const config = join(folder, 'redrive.yaml')
// Short intervals, so that a server takes over soon.
writeFileSync(config, 'leaseMs: 3s\nsweepMs: 500ms\npollMs: 500ms\n')

const children = new Set<ChildProcess>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

interface Server {
  child: ChildProcess
  url: string
}

async function serve(store: string): Promise<Server> {
  const args = [main, 'serve', '--port', '0', '--store', store, '--config', config]
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: plainEnv,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  const lines = createInterface({ input: child.stdout })
  const url = await new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      const { message, url: address } = JSON.parse(line) as { message: string; url?: string }
      if (message === 'server started') resolve(address!)
    })
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
  })
  return { child, url }
}

/** Reads the feed in the background. */
function watch(client: Client): { events: FeedEvent[]; ids: () => string[]; end: () => void } {
  const events: FeedEvent[] = []
  const ending = new AbortController()
  void (async () => {
    for await (const event of client.watchEvents({}, { signal: ending.signal })) events.push(event)
  })()
  const ids = (): string[] =>
    events.flatMap((event) => (event.type === 'letters' ? event.items.map(({ id }) => id) : []))
  return { events, ids, end: () => ending.abort() }
}

const until = (check: () => unknown): Promise<unknown> =>
  waitFor(check, { timeout: limitMs, interval: 50 })

const postgres = backend('postgres')
const redis = backend('redis')
const stores: [name: string, missing: string | undefined, place: () => Place & { url: string }][] =
  [
    [
      'Postgres',
      postgres.missing,
      () => {
        const place = postgresPlace(postgres.url)
        return { ...place, url: withSetting(postgres.url, 'schema', place.name) }
      },
    ],
    [
      'Redis',
      redis.missing,
      () => {
        const place = redisPlace(redis.url)
        return { ...place, url: withSetting(redis.url, 'prefix', place.name) }
      },
    ],
  ]

function withSetting(url: string, key: string, value: string): string {
  const address = new URL(url)
  address.searchParams.set(key, value)
  return address.href
}

// The servers meet in the store only, whose contract has two connections on each driver.
const chosen = stores.slice(0, atDepth(1, stores.length))

describe.each(chosen)('two servers on one %s', (_, missing, placeOf) => {
  let store: Store
  let one: Server
  let other: Server
  let clients: [Client, Client]
  let token: string
  let clear: () => Promise<void>

  beforeAll(async () => {
    if (missing !== undefined) return
    const place = placeOf()
    clear = place.clear
    store = await connect(place.url, systemClock)
    await store.open()
    const tokens = new Tokens({ store, clock: systemClock })
    const created = await tokens.create({ name: 'mia', createdBy: 'test', role: 'admin' })
    token = created.token
    ;[one, other] = await Promise.all([serve(place.url), serve(place.url)])
    clients = [one, other].map(({ url }) => createClient({ url, token })) as [Client, Client]
  }, limitMs)

  afterAll(async () => {
    if (missing !== undefined) return
    for (const { child } of [one, other]) {
      const exited = child.exitCode ?? child.signalCode ?? once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    await store.close()
    await clear()
  }, limitMs)

  const failure = (json: number) => ({ queue: 'orders', json, error: { message: 'refused' } })

  it.skipIf(missing)(
    'show letters that the other captured, also after a reconnect to the other',
    async () => {
      const [a, b] = clients
      const feed = watch(b)
      await until(() => expect(feed.events.some(({ type }) => type === 'ready')).toBe(true))
      const { id } = await a.capture(failure(1))
      await until(() => expect(feed.ids()).toContain(id))
      feed.end()
      const missed = await a.capture(failure(2))
      const again = a.watchEvents({}, { lastEventId: id })
      for await (const event of again) {
        if (event.type !== 'letters') continue
        expect(event.items.map((letter) => letter.id)).toEqual([id, missed.id])
        break
      }
    },
    limitMs,
  )

  it.skipIf(missing)(
    'share tokens, idempotency keys, paused queues and the list of workers',
    async () => {
      const [a, b] = clients
      const created = await a.createToken({ name: 'ci', permissions: ['letter:read'] })
      const ofToken = createClient({ url: other.url, token: created.token })
      expect(await ofToken.getCaller()).toMatchObject({ name: 'ci' })
      await a.revokeToken({ id: created.info.id })
      await expect(ofToken.getCaller()).rejects.toMatchObject({ problem: { status: 401 } })
      const key = { idempotencyKey: systemClock.id() }
      const first = await a.capture(failure(3), key)
      expect(await b.capture(failure(3), key)).toEqual(first)
      await a.pauseQueue({ queue: 'orders', reason: 'repair' })
      expect(await b.listPausedQueues()).toMatchObject([{ queue: 'orders', reason: 'repair' }])
      expect(await b.resumeQueue({ queue: 'orders' })).toEqual({ resumed: true })
      expect(await a.listPausedQueues()).toEqual([])
      await until(async () => {
        const workers = await a.listWorkers()
        const pids = [one.child.pid, other.child.pid]
        expect(workers).toHaveLength(2)
        expect(new Set(workers.map(({ pid }) => pid))).toEqual(new Set(pids))
        expect(workers.every(({ kind }) => kind === 'server')).toBe(true)
      })
    },
    limitMs,
  )

  it.skipIf(missing)(
    'share sessions',
    async () => {
      const json = { 'content-type': 'application/json', 'x-redrive-csrf': '1' }
      const body = JSON.stringify({ token })
      const created = await fetch(`${one.url}/api/session`, {
        method: 'POST',
        headers: json,
        body,
      })
      expect(created.status).toBe(201)
      const [cookie] = created.headers.getSetCookie()[0]!.split(';')
      const headers = { cookie: cookie!, 'x-redrive-csrf': '1' }
      const seen = await fetch(`${other.url}/api/session`, { headers })
      expect(await seen.json()).toMatchObject({ name: 'mia' })
      const stream = await fetch(`${other.url}/api/events`, { headers: { cookie: cookie! } })
      expect(stream.status).toBe(200)
      const ended = await fetch(`${one.url}/api/session`, { method: 'DELETE', headers })
      expect(await ended.json()).toEqual({ ended: true })
      expect((await fetch(`${other.url}/api/session`, { headers })).status).toBe(401)
      // The stream of an ended session ends as well.
      expect(await stream.text()).toContain('event: ready')
    },
    limitMs,
  )

  it.skipIf(missing)(
    'continue the bulk action of a server that was killed, and act on each letter once',
    async () => {
      const count = 1200
      const lines = Array.from({ length: count }, (__, index) =>
        JSON.stringify({ ...failure(index), queue: 'bulk' }),
      )
      for await (const { problem } of clients[0].captureMany({}, { lines }))
        expect(problem).toBeUndefined()
      const filter = { queue: 'bulk' }
      const plan = await clients[0].planBulkAction({ action: 'park', filter, rate: 200 })
      expect(plan.count).toBe(count)
      await clients[0].runBulkAction({ id: plan.id })
      const succeeded = async (): Promise<number> =>
        (
          (await store.records.get('bulk', plan.id))!.value as unknown as {
            progress: { succeeded: number }
          }
        ).progress.succeeded
      await until(async () => expect(await succeeded()).toBeGreaterThan(0))
      const record = await store.records.get('bulk', plan.id)
      const { worker } = record!.value as { worker: string }
      const isOne = worker.includes(`-${one.child.pid}-`)
      const [runner, survivor] = isOne ? [one, other] : [other, one]
      expect(worker).toContain(`-${runner.child.pid}-`)
      const client = createClient({ url: survivor.url, token })
      const feed = watch(client)
      runner.child.kill('SIGKILL')
      expect(await succeeded()).toBeLessThan(count)
      await until(() =>
        expect(feed.events).toContainEqual(
          expect.objectContaining({
            type: 'bulk-action',
            action: expect.objectContaining({ id: plan.id, state: 'finished' }) as unknown,
          }),
        ),
      )
      feed.end()
      const { progress } = await client.getBulkAction({ id: plan.id })
      expect(progress).toMatchObject({ succeeded: count, failed: 0, skipped: 0, pending: 0 })
      const versions: number[] = []
      for (let cursor: string | undefined; ;) {
        const page = await client.listLetters({
          ...filter,
          state: 'parked',
          limit: 1000,
          ...(cursor === undefined ? {} : { cursor }),
        })
        versions.push(...page.items.map(({ version }) => version))
        cursor = page.cursor
        if (cursor === undefined) break
      }
      expect(versions).toHaveLength(count)
      expect(new Set(versions)).toEqual(new Set([2]))
    },
    limitMs,
  )
})

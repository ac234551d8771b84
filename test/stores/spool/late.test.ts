import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RedriveEvent } from '../../../src/observer.ts'
import { immediate } from '../../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { createProxy } from '../../faults/proxy.ts'
import { opensearchPlace } from '../../servers/places.ts'
import { lacksPrivate, privatePostgres, privateRedis } from '../../servers/private.ts'
import { backend } from '../../servers/servers.ts'
import { spawn } from '../../processes.ts'
import { aFolder } from './spool-bench.ts'
import { waitFor } from '../../wait-for.ts'

/** A server that is stopped and can be started. */
interface LateServer {
  url: string
  start: () => Promise<unknown>
  stop: () => Promise<unknown>
  remove: () => Promise<unknown>
}

const kinds: { kind: string; lacks: string | undefined; begin: () => Promise<LateServer> }[] = [
  { kind: 'postgres', lacks: lacksPrivate.postgres(), begin: () => privatePostgres() },
  { kind: 'redis', lacks: lacksPrivate.redis(), begin: () => privateRedis() },
  {
    kind: 'opensearch',
    lacks: backend('opensearch').missing,
    // The shared server must not be stopped, so a proxy in front of it refuses connections.
    begin: async () => {
      const { url } = backend('opensearch')
      const place = opensearchPlace(url)
      const proxy = await createProxy(url)
      return {
        url: `${proxy
          .through(url)
          .replace(/^http:/, 'opensearch:')
          .replace(/\/$/, '')}/${place.name}`,
        start: () => proxy.set('pass'),
        stop: () => proxy.set('refuse'),
        remove: async () => {
          proxy.close()
          await place.clear()
        },
      }
    },
  },
]

const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number)

describe.each(kinds)('a queue that starts while $kind is unreachable', ({ lacks, begin }) => {
  describe.skipIf(lacks)('', { timeout: 120_000 }, () => {
    let server: LateServer
    beforeAll(async () => {
      server = await begin()
    }, 120_000)
    afterAll(() => server?.remove(), 60_000)

    it('captures to the spool, and redelivers in order once the server is up', async () => {
      await using folder = await aFolder()
      await server.stop()
      const events: RedriveEvent[] = []
      const dlq = await DeadLetterQueue.open(server.url, {
        spoolPath: join(folder.path, 'spool'),
        pollMs: 50,
        backoff: immediate(),
        observers: [(event) => events.push(event)],
      })
      const runs: unknown[] = []
      dlq.handle('mail', ({ input }) => void runs.push(input))
      dlq.start()
      for (const number of numbers(20))
        await dlq.enqueue({ type: 'mail', payload: number }, new Error('down'), { lane: 'a' })
      expect(await dlq.health()).toMatchObject({
        ok: false,
        problems: [
          expect.stringMatching(/^the store could not be opened yet, and is tried again: /),
          expect.stringMatching(/^20 letters wait in the spool/),
        ],
        spool: { letters: 20 },
      })
      const away = { code: 'STORE_UNAVAILABLE' }
      await expect(dlq.find()).rejects.toMatchObject(away)
      await expect(dlq.stats()).rejects.toMatchObject(away)
      await expect(dlq.metrics()).rejects.toMatchObject(away)
      await server.start()
      await waitFor(() => expect(runs).toEqual(numbers(20)), { timeout: 60_000 })
      expect(events).toContainEqual({ type: 'drained', count: 20, duplicates: 0 })
      await waitFor(async () => expect(await dlq.health()).toMatchObject({ ok: true }), {
        timeout: 30_000,
      })
      const lifetime = { captured: 20, occurrences: 0, resolved: 20 }
      await waitFor(async () => expect((await dlq.stats()).lifetime).toMatchObject(lifetime), {
        timeout: 30_000,
      })
      await dlq.close()
    })

    it('leaves its letters to the next process when it is killed before the server is up', async () => {
      await using folder = await aFolder()
      const spoolPath = join(folder.path, 'spool')
      await server.stop()
      const script = join(import.meta.dirname, 'late-child.ts')
      const child = spawn(process.execPath, [script, server.url, spoolPath], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let out = ''
      child.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString()
        if (out.split('\n').length > 10) child.kill('SIGKILL')
      })
      await once(child, 'close')
      const acknowledged = out.trim().split('\n').map(Number)
      expect(acknowledged).toEqual(numbers(acknowledged.length))
      await server.start()
      const drained = Promise.withResolvers<void>()
      const dlq = await DeadLetterQueue.open(server.url, {
        spoolPath,
        observers: [({ type }) => type === 'drained' && drained.resolve()],
      })
      await drained.promise
      const { items } = await dlq.find({
        queue: 'mail',
        state: 'pending',
        order: 'oldest',
        payload: true,
        limit: 1000,
      })
      const payloads = items.map(({ payload }) => JSON.parse(Buffer.from(payload.bytes).toString()))
      expect(payloads.slice(0, acknowledged.length)).toEqual(acknowledged)
      await dlq.close()
      expect(readdirSync(spoolPath)).toEqual([])
    })
  })
})

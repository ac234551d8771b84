import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { resolve } from '../../src/letter/moves.ts'
import type { Store } from '../../src/store.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { PrivateServer } from '../servers/control.ts'
import { lacksPrivate, privateRedis } from '../servers/private.ts'
import { openStore } from './backends.ts'

describe.skipIf(lacksPrivate.redis())('a Redis that lost data', () => {
  let server: PrivateServer
  let folder: string
  beforeEach(async () => {
    server = await privateRedis()
    const client = createClient({ url: server.url })
    await client.connect()
    folder = (await client.configGet('dir'))['dir']!
    client.destroy()
  })
  afterEach(() => server.remove())

  /** The append-only file. */
  function journal(): string {
    const below = join(folder, 'appendonlydir')
    return join(
      below,
      readdirSync(below).find((name) => name.endsWith('.incr.aof'))!,
    )
  }

  /** The state of each letter, after a check that all are intact and the counters agree. */
  async function readIntact(store: Store): Promise<Map<string, string>> {
    const { items } = await store.find({ order: 'oldest', limit: 100, payload: true })
    expect(items.filter(({ corrupt }) => corrupt !== undefined)).toEqual([])
    const states = Object.fromEntries(await store.tally('state'))
    const listed: Record<string, number> = {}
    for (const { state } of items) listed[state] = (listed[state] ?? 0) + 1
    expect(states).toEqual(listed)
    return new Map(items.map(({ id, state }) => [id, state]))
  }

  it('has the state before or after each write, wherever its journal was truncated', async () => {
    const letters = [1, 2, 3, 4].map(() => aLetter())
    const store = await openStore(server.url)
    for (const letter of letters) await store.add([letter])
    const before = readFileSync(journal()).length
    const by = { at: letters[0]!.updatedAt, actor: 'ada', guard: 'version' } as const
    await store.apply([resolve(letters[0]!, by)])
    await store.close()
    await server.stop()
    const file = journal()
    const bytes = readFileSync(file)
    const seen = new Set<string>()
    const cuts = [1, 7, Math.floor((bytes.length - before) / 2), bytes.length - before + 7]
    for (const cut of cuts) {
      writeFileSync(file, bytes)
      truncateSync(file, bytes.length - cut)
      await server.start()
      const again = await openStore(server.url)
      const states = await readIntact(again)
      const after = [...states.values()].filter((state) => state === 'resolved').length
      seen.add(`${states.size} letters, ${after} resolved`)
      await again.close()
      await server.stop()
    }
    expect([...seen]).toEqual(['4 letters, 0 resolved', '3 letters, 0 resolved'])
  }, 60_000)
})

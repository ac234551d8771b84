import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { resolve } from '../../src/letter/moves.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { PrivateServer } from '../servers/control.ts'
import { temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'
import { markOf, settleMarkOf, toldOf } from './marks.ts'
import { opened } from './backends.ts'
import { served } from './served.ts'
import { attach, lacksAttach, lacksStrace, traced, type Syscall } from './strace.ts'
import { unsynced, type Acts } from './synced.ts'

const count = 50
const script = join(import.meta.dirname, 'telling.ts')

const captures = (log: RegExp): Acts => ({
  count,
  log,
  mark: markOf,
  told: (n) => toldOf(markOf(n)),
  served: false,
})
const settles = (log: RegExp): Acts => ({
  ...captures(log),
  mark: settleMarkOf,
  told: (n) => toldOf(settleMarkOf(n)),
})

const lacking = lacksStrace()
describe.skipIf(lacking)(lacking ?? 'a process of ours', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let folder: string
  beforeEach(async () => {
    directory = await temporaryDirectory()
    folder = directory.path
  })
  afterEach(() => directory.clear())

  async function run(...args: string[]): Promise<Syscall[]> {
    const command = [process.execPath, script, ...args, String(count)]
    const { calls, code } = await traced(command)
    expect(code).toBe(0)
    return calls
  }

  /** Syncs of the folder itself before the first act was acknowledged: a new file's name is lost without. */
  const nameSyncs = (calls: readonly Syscall[], of: string): Syscall[] => {
    const first = calls.find(({ text }) => text.includes(toldOf(markOf(0))))!
    return calls.filter(
      ({ name, target, ok, end }) => name === 'fsync' && ok && target === of && end < first.start,
    )
  }

  const wal = /letters\.db-wal$/

  it('has SQLite sync every capture and every settle before it is acknowledged', async () => {
    const calls = await run('sqlite', join(folder, 'letters.db'), 'full')
    expect(unsynced(calls, captures(wal))).toEqual([])
    expect(unsynced(calls, settles(wal))).toEqual([])
    expect(nameSyncs(calls, folder)).not.toEqual([])
  })

  it('is caught when SQLite is told not to', async () => {
    const calls = await run('sqlite', join(folder, 'letters.db'), 'relaxed')
    expect(unsynced(calls, captures(wal))).toHaveLength(count)
    expect(unsynced(calls, settles(wal))).toHaveLength(count)
  })

  it('has a mailbox in SQLite sync every message before it is sent, and what becomes of it with the next', async () => {
    const mail = join(import.meta.dirname, 'telling-mail.ts')
    const command = [process.execPath, mail, join(folder, 'mail.db'), String(count)]
    const { calls, code } = await traced(command)
    expect(code).toBe(0)
    // All that was written before a message was told of, what became of the one before among it.
    expect(unsynced(calls, captures(/mail\.db-wal$/))).toEqual([])
  })

  it('has the spool sync every capture before it is acknowledged', async () => {
    const spool = join(folder, 'spool')
    mkdirSync(spool)
    const calls = await run('spool', spool, '-')
    expect(unsynced(calls, captures(/\.spool$/))).toEqual([])
    expect(nameSyncs(calls, spool)).not.toEqual([])
    expect(readdirSync(spool)).toEqual([expect.stringMatching(/\.spool$/)])
  })
})

describe.each(served)('a server: $name', (kind) => {
  const lacking = lacksAttach() ?? kind.lacks
  describe.skipIf(lacking)(lacking ?? 'that is traced', () => {
    let server: PrivateServer
    afterEach(() => server?.remove())

    /** Does each act, and has the server hear of it once it was acknowledged. */
    async function trace(acts: AsyncIterable<string>): Promise<Syscall[]> {
      const teller = await kind.teller(server)
      const tracing = await attach(await kind.pids(server))
      try {
        for await (const mark of acts) await teller.tell(toldOf(mark))
      } finally {
        await teller.end()
        await tracing.stop()
      }
      return tracing.calls()
    }

    async function* storing(): AsyncGenerator<string> {
      const store = await opened(server.url)
      for (let n = 0; n < count; n++) {
        const letter = aLetter({ queue: markOf(n), fingerprint: markOf(n) })
        await store.add([letter])
        yield markOf(n)
        // Twice: a log in pages may cut one of them in two.
        const mark = settleMarkOf(n)
        const by = { at: letter.updatedAt, actor: mark, note: mark, guard: 'version' } as const
        await store.apply([resolve(letter, by)])
        yield mark
      }
      await store.close()
    }

    async function* plainly(): AsyncGenerator<string> {
      const writer = await kind.write(server)
      for (let n = 0; n < count; n++) {
        await writer.tell(markOf(n))
        yield markOf(n)
      }
      await writer.end()
    }

    it('syncs every capture and every settle of the store before it replies', async () => {
      server = await kind.begin()
      const calls = await trace(storing())
      expect(unsynced(calls, { ...captures(kind.log), served: true })).toEqual([])
      expect(unsynced(calls, { ...settles(kind.log), served: true })).toEqual([])
    }, 60_000)

    it('is caught when it is told not to', async () => {
      server = await kind.beginCareless()
      const calls = await trace(plainly())
      // It still syncs now and then, and one of the acts may have been in time for it.
      const caught = unsynced(calls, { ...captures(kind.log), served: true })
      expect(caught.length).toBeGreaterThan(count / 2)
    }, 60_000)
  })
})

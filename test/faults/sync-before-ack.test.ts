import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { resolve } from '../../src/letter/moves.ts'
import { aLetter } from '../../src/testing/index.ts'
import type { PrivateServer } from '../servers/control.ts'
import { temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'
import { captureMarker, settleMarker, acknowledgedMarker } from './trace-markers.ts'
import { openStore } from './backends.ts'
import { tracedServers } from './traced-servers.ts'
import { attach, lacksAttach, lacksStrace, runTraced, type Syscall } from './strace.ts'
import { findUnsynced, type TracedActions } from './find-unsynced.ts'

const count = 50
const script = join(import.meta.dirname, 'sync-trace-store.ts')

const captureActions = (log: RegExp): TracedActions => ({
  count,
  log,
  marker: captureMarker,
  acknowledged: (n) => acknowledgedMarker(captureMarker(n)),
  viaSocket: false,
})
const settleActions = (log: RegExp): TracedActions => ({
  ...captureActions(log),
  marker: settleMarker,
  acknowledged: (n) => acknowledgedMarker(settleMarker(n)),
})

const lacking = lacksStrace()
describe.skipIf(lacking)(lacking ?? 'a process with a local file', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let folder: string
  beforeEach(async () => {
    directory = await temporaryDirectory()
    folder = directory.path
  })
  afterEach(() => directory.clear())

  async function run(...args: string[]): Promise<Syscall[]> {
    const command = [process.execPath, script, ...args, String(count)]
    const { calls, code } = await runTraced(command)
    expect(code).toBe(0)
    return calls
  }

  /**
   * Syncs of the folder before the first acknowledgement: without them, a new file name is lost.
   */
  const folderSyncs = (calls: readonly Syscall[], of: string): Syscall[] => {
    const first = calls.find(({ text }) => text.includes(acknowledgedMarker(captureMarker(0))))!
    return calls.filter(
      ({ name, target, ok, end }) => name === 'fsync' && ok && target === of && end < first.start,
    )
  }

  const wal = /letters\.db-wal$/

  it('syncs every capture and every settle in SQLite before the acknowledgement', async () => {
    const calls = await run('sqlite', join(folder, 'letters.db'), 'full')
    expect(findUnsynced(calls, captureActions(wal))).toEqual([])
    expect(findUnsynced(calls, settleActions(wal))).toEqual([])
    expect(folderSyncs(calls, folder)).not.toEqual([])
  })

  it('is detected when SQLite does not sync', async () => {
    const calls = await run('sqlite', join(folder, 'letters.db'), 'relaxed')
    expect(findUnsynced(calls, captureActions(wal))).toHaveLength(count)
    expect(findUnsynced(calls, settleActions(wal))).toHaveLength(count)
  })

  it('syncs every message of a SQLite mailbox before the send resolves, and its outcome with the next', async () => {
    const mail = join(import.meta.dirname, 'sync-trace-mailbox.ts')
    const command = [process.execPath, mail, join(folder, 'mail.db'), String(count)]
    const { calls, code } = await runTraced(command)
    expect(code).toBe(0)
    // This covers everything written before a send resolved, including the previous outcome.
    expect(findUnsynced(calls, captureActions(/mail\.db-wal$/))).toEqual([])
  })

  it('syncs every capture in the spool before the acknowledgement', async () => {
    const spool = join(folder, 'spool')
    mkdirSync(spool)
    const calls = await run('spool', spool, '-')
    expect(findUnsynced(calls, captureActions(/\.spool$/))).toEqual([])
    expect(folderSyncs(calls, spool)).not.toEqual([])
    expect(readdirSync(spool)).toEqual([expect.stringMatching(/\.spool$/)])
  })
})

describe.each(tracedServers)('a server: $name', (kind) => {
  const lacking = lacksAttach() ?? kind.lacks
  describe.skipIf(lacking)(lacking ?? 'that is traced', () => {
    let server: PrivateServer
    afterEach(() => server?.remove())

    /** Runs each action, and sends the server a marker once the action was acknowledged. */
    async function trace(markers: AsyncIterable<string>): Promise<Syscall[]> {
      const sender = await kind.openSender(server)
      const tracing = await attach(await kind.pids(server))
      try {
        for await (const marker of markers) await sender.send(acknowledgedMarker(marker))
      } finally {
        await sender.end()
        await tracing.stop()
      }
      return tracing.calls()
    }

    async function* storeLetters(): AsyncGenerator<string> {
      const store = await openStore(server.url)
      for (let n = 0; n < count; n++) {
        const letter = aLetter({ queue: captureMarker(n), fingerprint: captureMarker(n) })
        await store.add([letter])
        yield captureMarker(n)
        // The marker is written twice: a page boundary of the log may split one of them.
        const marker = settleMarker(n)
        const by = { at: letter.updatedAt, actor: marker, note: marker, guard: 'version' } as const
        await store.apply([resolve(letter, by)])
        yield marker
      }
      await store.close()
    }

    async function* writeStrings(): AsyncGenerator<string> {
      const writer = await kind.openWriter(server)
      for (let n = 0; n < count; n++) {
        await writer.send(captureMarker(n))
        yield captureMarker(n)
      }
      await writer.end()
    }

    it('syncs every capture and every settle of the store before it replies', async () => {
      server = await kind.begin()
      const captures = { ...captureActions(kind.log), viaSocket: true }
      const settles = { ...settleActions(kind.log), viaSocket: true }
      const findProblems = async (): Promise<string[]> => {
        const calls = await trace(storeLetters())
        return [...findUnsynced(calls, captures), ...findUnsynced(calls, settles)]
      }
      // On a busy machine, a trace may lack a reply. This says nothing of what was synced before.
      const isIncomplete = (problem: string): boolean => problem.endsWith('no reply was seen')
      let problems = await findProblems()
      for (let tries = 1; tries < 4 && problems.some(isIncomplete); tries++) {
        expect(problems.filter((problem) => !isIncomplete(problem))).toEqual([])
        problems = await findProblems()
      }
      expect(problems).toEqual([])
    }, 180_000)

    it('is detected when it does not sync', async () => {
      server = await kind.beginUnsynced()
      const calls = await trace(writeStrings())
      // The server still syncs periodically, which may cover some of the actions.
      const caught = findUnsynced(calls, { ...captureActions(kind.log), viaSocket: true })
      expect(caught.length).toBeGreaterThan(count / 2)
    }, 60_000)
  })
})

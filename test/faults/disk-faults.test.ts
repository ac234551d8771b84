import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'
import { actedOn } from './acted-on.ts'
import { lacksStrace, traced, type Syscall } from './strace.ts'

const script = join(import.meta.dirname, 'acting.ts')
const letters = actedOn()

/** What the process said: what was acknowledged, and the codes of what was refused. */
interface Said {
  ok: Set<string>
  refused: string[]
  /** How the file was kept in the end. */
  journal: string | undefined
}

function heard(said: string): Said {
  const lines = said.split('\n').filter(Boolean)
  const ok = lines.flatMap((line) => /^ok (\w+)/.exec(line)?.[1] ?? [])
  const refused = lines.flatMap((line) => /^refused \w+ \d (.+)/.exec(line)?.[1] ?? [])
  return { ok: new Set(ok), refused, journal: /^health (\w+)$/m.exec(said)?.[1] }
}

/** Opens the file without faults: what was acknowledged is there, and all else is there whole or not at all. */
async function judge(path: string, { ok }: Said): Promise<void> {
  const store = sqliteStore({ path })
  await store.open()
  try {
    expect((await store.health()).problems).toEqual([])
    const kept = await store.get([letters.first.id, letters.second.id])
    const [first, second] = [letters.first, letters.second].map(({ id }) =>
      kept.find((letter) => letter.id === id),
    )
    if (ok.has('add')) expect(first).toBeDefined()
    if (ok.has('settle')) expect(first).toMatchObject({ state: 'resolved' })
    if (ok.has('remove')) expect(second).toBeUndefined()
    for (const letter of kept) {
      expect(letter.corrupt).toBeUndefined()
      expect(letter.payload.bytes).toEqual(letters.first.payload.bytes)
    }
    const counted = [...(await store.tally('state')).values()].reduce((sum, n) => sum + n, 0)
    expect(counted).toBe(kept.length)
  } finally {
    await store.close()
  }
  const file = new DatabaseSync(path)
  expect(file.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  file.close()
}

const lacking = lacksStrace()
describe.skipIf(lacking)(lacking ?? 'sqliteStore on a disk that fails', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let empty: string
  beforeAll(async () => {
    directory = await temporaryDirectory()
    empty = join(directory.path, 'empty.db')
    const store = sqliteStore({ path: empty })
    await store.open()
    await store.close()
  })
  afterAll(() => directory.clear())

  /** Runs the acts with one fault; undefined once the fault lies beyond the last call. */
  async function withFault(
    calls: string,
    fault: string,
    n: number,
    from?: string,
  ): Promise<{ said: Said; calls: Syscall[]; path: string } | undefined> {
    const path = join(directory.path, `${fault}-${n}.db`.replace('+', ''))
    if (from) copyFileSync(from, path)
    const inject = ['-e', `trace=${calls},openat`, '-e', `inject=${calls}:${fault}`]
    const result = await traced([process.execPath, script, path], inject)
    const text = `${fault}: ${result.said}`
    expect(result.code, text).toBe(0)
    const said = heard(result.said)
    expect(said.journal, text).toBeDefined()
    if (!result.calls.some(({ text }) => text.includes('(INJECTED)'))) return undefined
    return { said, calls: result.calls, path }
  }

  /** One run for each call that there is, two at a time. */
  async function sweep(run: (n: number) => Promise<boolean>): Promise<number> {
    let next = 1
    let done = 0
    const lane = async (): Promise<void> => {
      for (let n = next++; await run(n); n = next++) done += 1
    }
    await Promise.all([lane(), lane()])
    return done
  }

  it('acknowledges nothing that could not be synced, whichever sync fails, and goes on afterwards', async () => {
    const runs = await sweep(async (n) => {
      const run = await withFault('fsync,fdatasync', `error=EIO:when=${n}`, n)
      if (!run) return false
      await judge(run.path, run.said)
      expect([...run.said.ok], `sync ${n}`).toEqual(['open', 'add', 'settle', 'remove'])
      expect(run.said.journal, `sync ${n}`).toBe('wal')
      expect(new Set(run.said.refused).size, `sync ${n}`).toBeLessThanOrEqual(1)
      for (const code of run.said.refused) expect(code).toBe('STORE_UNAVAILABLE')
      const failed = run.calls.find(({ text }) => text.includes('(INJECTED)'))!
      const again = run.calls.some(
        ({ name, text, start }) =>
          name === 'openat' && start > failed.end && text.includes(`"${run.path}"`),
      )
      if (run.said.refused.length > 0) expect(again, `sync ${n}: a fresh look`).toBe(true)
      return true
    })
    expect(runs).toBeGreaterThan(8)
  }, 120_000)

  it('is as before or as after, whichever write finds the disk full', async () => {
    const runs = await sweep(async (n) => {
      const run = await withFault('pwrite64', `error=ENOSPC:when=${n}+`, n, empty)
      if (!run) return false
      await judge(run.path, run.said)
      const { ok, refused } = run.said
      expect(new Set(refused)).not.toContain('CLOSED')
      if (ok.has('add')) expect([...new Set(refused)]).toEqual(refused.slice(0, 1))
      // From here on only what is written when the file is closed would fail.
      return refused.length > 0
    })
    expect(runs).toBeGreaterThan(30)
  }, 120_000)
})

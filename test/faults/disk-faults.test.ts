import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sqliteMailbox } from '../../src/mailboxes/sqlite/sqlite.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { atDepth } from '../depth.ts'
import { temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'
import { sampleLetters } from './sample-letters.ts'
import { lacksStrace, runTraced, type Syscall } from './strace.ts'

const storeScript = join(import.meta.dirname, 'disk-fault-store.ts')
const mailboxScript = join(import.meta.dirname, 'disk-fault-mailbox.ts')
const letters = sampleLetters()

/** What the process printed: the acknowledged actions, and the codes of the refused ones. */
interface Report {
  ok: Set<string>
  refused: string[]
  /** The journal mode at the end. */
  journal: string | undefined
}

function parseReport(output: string): Report {
  const lines = output.split('\n').filter(Boolean)
  const ok = lines.flatMap((line) => /^ok (\w+)/.exec(line)?.[1] ?? [])
  const refused = lines.flatMap((line) => /^refused \w+ \d (.+)/.exec(line)?.[1] ?? [])
  return { ok: new Set(ok), refused, journal: /^health (\w+)$/m.exec(output)?.[1] }
}

/**
 * Opens the file without faults: acknowledged changes are there, all others completely or not at
 * all.
 */
async function verifyStore(path: string, { ok }: Report): Promise<void> {
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
    const countLetters = [...(await store.tally('state')).values()].reduce((sum, n) => sum + n, 0)
    expect(countLetters).toBe(kept.length)
  } finally {
    await store.close()
  }
  expectIntegrity(path)
}

/** The same checks for a mailbox. */
async function verifyMailbox(path: string, { ok }: Report): Promise<void> {
  const mailbox = sqliteMailbox({ path, name: 'work' })
  await mailbox.open()
  try {
    const ids = (await mailbox.receive({ max: 10 })).map(({ id }) => id)
    if (ok.has('second')) expect(ids).toContain('second')
    if (ok.has('first') && !ok.has('receive')) expect(ids).toContain('first')
    if (ok.has('acknowledge')) expect(ids).not.toContain('first')
    expect(new Set(ids).size).toBe(ids.length)
  } finally {
    await mailbox.close()
  }
  expectIntegrity(path)
}

function expectIntegrity(path: string): void {
  const file = new DatabaseSync(path)
  expect(file.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  file.close()
}

interface Run {
  report: Report
  calls: Syscall[]
  failed: Syscall
}

/** Runs the script with one fault; undefined once the fault lies beyond the last call. */
async function runWithFault(
  script: string,
  path: string,
  calls: string,
  fault: string,
): Promise<Run | undefined> {
  const trace = `trace=${calls},fsync,fdatasync,openat,write`
  const inject = ['-e', trace, '-e', `inject=${calls}:${fault}`]
  const result = await runTraced([process.execPath, script, path], inject)
  const text = `${fault}: ${result.output}`
  expect(result.code, text).toBe(0)
  const report = parseReport(result.output)
  expect(report.journal, text).toBeDefined()
  const failed = result.calls.find(({ text }) => text.includes('(INJECTED)'))
  return failed && { report, calls: result.calls, failed }
}

/** One run for each `step`th traced call, two at a time. Returns the number of calls covered. */
async function sweep(run: (n: number) => Promise<boolean>, step = 1): Promise<number> {
  let next = 1
  let last = 0
  const lane = async (): Promise<void> => {
    const take = (): number => (next += step) - step
    for (let n = take(); await run(n); n = take()) last = Math.max(last, n)
  }
  await Promise.all([lane(), lane()])
  return last
}

const lacking = lacksStrace()
describe.skipIf(lacking)(lacking ?? 'SQLite on a disk that fails', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let empty: string
  const at = (name: string): string => join(directory.path, `${name}.db`)
  beforeAll(async () => {
    directory = await temporaryDirectory()
    empty = at('empty')
    const store = sqliteStore({ path: empty })
    await store.open()
    await store.close()
  })
  afterAll(() => directory.clear())

  it('acknowledges no write whose sync failed, whichever sync fails, and continues afterwards', async () => {
    const covered = await sweep(
      async (n) => {
        const path = at(`sync-${n}`)
        const run = await runWithFault(storeScript, path, 'fsync,fdatasync', `error=EIO:when=${n}`)
        if (!run) return false
        await verifyStore(path, run.report)
        expect([...run.report.ok], `sync ${n}`).toEqual(['open', 'add', 'settle', 'remove'])
        expect(run.report.journal, `sync ${n}`).toBe('wal')
        expect(new Set(run.report.refused).size, `sync ${n}`).toBeLessThanOrEqual(1)
        for (const code of run.report.refused) expect(code).toBe('STORE_UNAVAILABLE')
        const again = run.calls.some(
          ({ name, text, start }) =>
            name === 'openat' && start > run.failed.end && text.includes(`"${path}"`),
        )
        if (run.report.refused.length > 0)
          expect(again, `sync ${n}: opens the file again`).toBe(true)
        return true
      },
      atDepth(2, 1),
    )
    expect(covered).toBeGreaterThan(8)
  }, 120_000)

  /** Each sync of a mailbox process fails in turn: those of SQLite (fsync) or ours (fdatasync). */
  async function sweepMail(
    sync: 'fsync' | 'fdatasync',
    check: (run: Run, path: string, n: number) => void = () => {},
  ): Promise<number> {
    return sweep(
      async (n) => {
        const path = at(`mail-${sync}-${n}`)
        const run = await runWithFault(mailboxScript, path, sync, `error=EIO:when=${n}`)
        if (!run) return false
        await verifyMailbox(path, run.report)
        const all = ['open', 'first', 'receive', 'acknowledge', 'second']
        expect([...run.report.ok], `${sync} ${n}`).toEqual(all)
        for (const code of run.report.refused) expect(code).toBe('MAILBOX_UNAVAILABLE')
        check(run, path, n)
        return true
      },
      sync === 'fsync' ? atDepth(2, 1) : 1,
    )
  }

  it('acknowledges no message whose sync failed, whichever sync fails, and continues afterwards', async () => {
    expect(await sweepMail('fsync')).toBeGreaterThan(6)
  }, 120_000)

  it('writes messages again after a failed sync, because the next sync would report success', async () => {
    const covered = await sweepMail('fdatasync', ({ calls, failed }, path, n) => {
      const sent = calls.find(
        ({ name, text, start }) =>
          name === 'write' && start > failed.end && /ok (?:first|second)/.test(text),
      )!
      const synced = calls.some(
        ({ name, target, ok, start, end }) =>
          name === 'fsync' && target === path && ok && start > failed.end && end < sent.start,
      )
      expect(synced, `flush ${n}: the file itself`).toBe(true)
    })
    expect(covered).toBeGreaterThan(2)
  }, 120_000)

  it('has the state before or after a write, whichever write finds the disk full', async () => {
    const covered = await sweep(
      async (n) => {
        const path = at(`full-${n}`)
        copyFileSync(empty, path)
        const run = await runWithFault(storeScript, path, 'pwrite64', `error=ENOSPC:when=${n}+`)
        if (!run) return false
        await verifyStore(path, run.report)
        const { ok, refused } = run.report
        expect(new Set(refused)).not.toContain('CLOSED')
        if (ok.has('add')) expect([...new Set(refused)]).toEqual(refused.slice(0, 1))
        // Beyond this point, only the writes at close would fail.
        return refused.length > 0
      },
      atDepth(5, 1),
    )
    expect(covered).toBeGreaterThan(30)
  }, 120_000)
})

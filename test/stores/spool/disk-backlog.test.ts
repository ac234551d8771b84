import type { Report } from '../../../src/backends/sqlite/protocol.ts'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import type { Entry, SpoolEvent } from '../../../src/stores/spool/backlog.ts'
import { DiskBacklog } from '../../../src/stores/spool/disk-backlog.ts'
import { FolderKeeper } from '../../../src/stores/spool/folder-keeper.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { atDepth } from '../../depth.ts'
import { acknowledgedMarker, captureMarker } from '../../faults/trace-markers.ts'
import { lacksStrace, runTraced } from '../../faults/strace.ts'
import { aFolder, block } from './spool-bench.ts'

async function openBacklog(path: string, events: SpoolEvent[] = []): Promise<DiskBacklog> {
  const backlog = new DiskBacklog(path, 2 ** 30, systemClock, (event) => events.push(event))
  await backlog.open()
  onTestFinished(() => backlog.close())
  return backlog
}

/** Reads and settles all waiting letters. */
async function drain(backlog: DiskBacklog): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = []
  for (;;) {
    const entries = await backlog.head(256)
    if (entries.length === 0) return letters
    letters.push(...entries.map(({ letter }) => letter))
    await backlog.settle(entries, [])
  }
}

/** Writes letters as a process that ends. Returns the file. */
async function writeFileOf(path: string, letters: readonly DeadLetter[]): Promise<string> {
  const backlog = await openBacklog(path)
  await backlog.append(letters)
  await backlog.close()
  return join(
    path,
    readdirSync(path).find((name) => name.endsWith('.spool'))!,
  )
}

/** Changes a file of letters as an SQLite client. */
function change(file: string, sql: string): void {
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

const letters = [
  aLetter(),
  aLetter({
    lane: 'a',
    metadata: JSON.parse('{"__proto__":{"x":1},"lone":"\\ud800"}') as DeadLetter['metadata'],
    payload: {
      bytes: Uint8Array.from({ length: 300 }, (_, at) => at),
      contentType: 'application/octet-stream',
      size: 300,
      version: 1,
    },
  }),
  aLetter({ headers: { a: 'ü' }, state: 'parked' }),
]
const idsOf = (some: readonly DeadLetter[]): string[] => some.map(({ id }) => id)

describe('DiskBacklog', () => {
  it('returns letters unchanged to the next process that opens the folder', async () => {
    await using folder = await aFolder()
    await writeFileOf(folder.path, letters)
    const backlog = await openBacklog(folder.path)
    expect(backlog).toMatchObject({ letters: 3, oldestAt: letters[0]!.deadLetteredAt })
    expect(await drain(backlog)).toEqual(letters)
    expect(backlog).toMatchObject({ empty: true, letters: 0, bytes: 0 })
    expect(readdirSync(folder.path)).toEqual([])
  })

  it('writes concurrent appends in one transaction', async () => {
    await using folder = await aFolder()
    const reports: Report[] = []
    const keeper = new FolderKeeper(folder.path, (report) => reports.push(report))
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
    onTestFinished(() => exec.mockRestore())
    const rows = [['2026-01-01T00:00:00.000Z', '{}']]
    keeper.run(
      0,
      Array.from({ length: 100 }, (_, n) => [n, 'append', { id: systemClock.id(), rows }]),
    )
    keeper.close()
    expect(reports).toMatchObject([{ errors: [], events: [{ status: { letters: 100 } }] }])
    expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT')).toHaveLength(1)
  })

  it('does not touch the files of a running process', async () => {
    await using folder = await aFolder()
    const first = await openBacklog(folder.path)
    await first.append(letters)
    const second = await openBacklog(folder.path)
    expect(second.empty).toBe(true)
    await second.append([aLetter()])
    expect(first.letters).toBe(3)
    await second.close()
    await first.close()
    const third = await openBacklog(folder.path)
    expect(third.letters).toBe(4)
    expect((await drain(third)).slice(0, 3)).toEqual(letters)
  })

  it('continues a drain that another process began', async () => {
    await using folder = await aFolder()
    await writeFileOf(folder.path, letters)
    const first = await openBacklog(folder.path)
    await first.settle(await first.head(2), [])
    await first.head(1)
    await first.close()
    const second = await openBacklog(folder.path)
    expect(await drain(second)).toEqual([letters[2]])
  })

  it('reads a few megabytes at a time', async () => {
    await using folder = await aFolder()
    const bytes = new Uint8Array(2 ** 20)
    const large = Array.from({ length: 7 }, () =>
      aLetter({ payload: { ...letters[0]!.payload, bytes, size: bytes.length } }),
    )
    const backlog = await openBacklog(folder.path)
    await backlog.append(large)
    expect((await backlog.head(256)).length).toBeLessThan(5)
    expect(idsOf(await drain(backlog))).toEqual(idsOf(large))
  })

  it('rejects a letter that could not be read again', async () => {
    await using folder = await aFolder()
    const backlog = await openBacklog(folder.path)
    const task = { id: 'J1', description: 'd', source: 's', assignee: 'mia' }
    await expect(backlog.append([aLetter(), aLetter({ task })])).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(/task: .*assignee/) as string,
    })
    expect(readdirSync(folder.path)).toEqual([])
  })

  it('rejects a folder with journals of an earlier version and names them', async () => {
    await using folder = await aFolder()
    const old = '01900000-0000-7000-8000-000000000000-000001.journal'
    writeFileSync(join(folder.path, old), 'letters')
    await expect(openBacklog(folder.path)).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining(old) as string,
    })
    expect(readFileSync(join(folder.path, old), 'utf8')).toBe('letters')
  })
})

describe('DiskBacklog with damage', () => {
  /** Opens a copy of a file in a folder of its own, with another letter written afterwards. */
  async function drainDamaged(bytes: Uint8Array) {
    await using folder = await aFolder()
    writeFileSync(join(folder.path, `${systemClock.id()}.spool`), bytes)
    const events: SpoolEvent[] = []
    const backlog = await openBacklog(folder.path, events)
    const later = aLetter()
    await backlog.append([later])
    // Some bytes make a file that SQLite refuses to open. It is left after some attempts.
    let drained: DeadLetter[] | undefined
    while (!drained) drained = await drain(backlog).catch(() => undefined)
    const setAside = await backlog.countSetAside()
    await backlog.close()
    expect(drained.at(-1)).toEqual(later)
    for (const event of events) if (event.type === 'set-aside') readFileSync(event.file)
    return { drained: drained.slice(0, -1), setAside }
  }

  it('of any byte loses no letter silently, and new letters are accepted', async () => {
    await using folder = await aFolder()
    const whole = readFileSync(await writeFileOf(folder.path, letters))
    let damaged = 0
    for (let at = 0; at < whole.length; at += at < 120 ? 1 : 97) {
      const { drained, setAside } = await drainDamaged(whole.with(at, whole[at]! ^ 0x40))
      if (setAside.damaged + setAside.unreadable > 0) damaged += 1
      else expect(drained, `byte ${at}`).toEqual(letters)
      expect(idsOf(letters)).toEqual(expect.arrayContaining(idsOf(drained)))
    }
    expect(damaged).toBeGreaterThan(10)
  }, 60_000)

  it('in the bytes of a letter costs that letter only', async () => {
    await using folder = await aFolder()
    const whole = readFileSync(await writeFileOf(folder.path, letters))
    const at = whole.indexOf(letters[1]!.id)
    const { drained, setAside } = await drainDamaged(whole.with(at, 0x7a))
    expect(drained).toEqual([letters[0], letters[2]])
    expect(setAside).toEqual({ damaged: 1, refused: 0, unreadable: 0 })
  })

  it('that truncates a file sets the file or the last letter aside', async () => {
    await using folder = await aFolder()
    const whole = readFileSync(await writeFileOf(folder.path, letters))
    for (const length of [1, 50, 100, 4096, 5000, whole.length - 1]) {
      const { drained, setAside } = await drainDamaged(whole.subarray(0, length))
      expect({ length, setAside }).toMatchObject({ setAside: { damaged: 1 } })
      expect(drained.length).toBeLessThan(3)
    }
  })

  it('is not reported for an empty file of a process that died before its first letter', async () => {
    const { drained, setAside } = await drainDamaged(new Uint8Array())
    expect({ drained, setAside }).toMatchObject({ drained: [], setAside: { damaged: 0 } })
  })
})

describe('DiskBacklog with a file of unexpected contents', () => {
  it('sets rows aside that are not letters', async () => {
    await using folder = await aFolder()
    const file = await writeFileOf(folder.path, letters)
    // 0x7b7d is {}, and 2745614147 is its checksum.
    change(file, "INSERT INTO letters (at, crc, letter) VALUES ('', 2745614147, x'7b7d')")
    const events: SpoolEvent[] = []
    const backlog = await openBacklog(folder.path, events)
    expect(await drain(backlog)).toEqual(letters)
    expect(events).toMatchObject([{ type: 'set-aside', what: 'refused' }])
  })

  it('leaves a file of a newer version unchanged and drains the others', async () => {
    await using folder = await aFolder()
    const file = await writeFileOf(folder.path, letters)
    change(file, 'PRAGMA user_version = 2')
    const before = readFileSync(file)
    const events: SpoolEvent[] = []
    const backlog = await openBacklog(folder.path, events)
    await backlog.append([letters[0]!])
    expect(await drain(backlog)).toEqual([letters[0]])
    expect(events).toMatchObject([
      { type: 'error', error: { message: expect.stringContaining('upgrade') as string } },
    ])
    expect(await backlog.countSetAside()).toMatchObject({ unreadable: 1 })
    await backlog.close()
    expect(readFileSync(file)).toEqual(before)
  })
})

describe('DiskBacklog with a file that cannot be opened', () => {
  it('retries it before later files, and reports it once', async () => {
    await using folder = await aFolder()
    const unblock = block(await writeFileOf(folder.path, letters.slice(0, 2)))
    const events: SpoolEvent[] = []
    const backlog = await openBacklog(folder.path, events)
    await backlog.append([letters[2]!])
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(backlog.head(1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await backlog.countSetAside()).toMatchObject({ unreadable: 1 })
    expect(events).toMatchObject([{ type: 'error' }])
    unblock()
    expect(await drain(backlog)).toEqual(letters)
    expect(await backlog.countSetAside()).toMatchObject({ unreadable: 0 })
  })

  it('skips it after some attempts, and drains it after a later open', async () => {
    await using folder = await aFolder()
    const unblock = block(await writeFileOf(folder.path, letters.slice(0, 2)))
    const first = await openBacklog(folder.path)
    await first.append([letters[2]!])
    let entries: Entry[] = []
    while (entries.length === 0) entries = await first.head(9).catch(() => [])
    expect(entries).toMatchObject([{ letter: { id: letters[2]!.id } }])
    await first.settle(entries, [])
    expect(first).toMatchObject({ empty: true })
    await first.close()
    unblock()
    expect(await drain(await openBacklog(folder.path))).toEqual(letters.slice(0, 2))
  })
})

describe('DiskBacklog on a failing disk', () => {
  it.skipIf(lacksStrace())(
    'has every acknowledged letter on disk, whichever sync fails',
    async () => {
      await using folder = await aFolder()
      const script = join(import.meta.dirname, '../../faults/sync-trace-store.ts')
      let failures = 0
      for (let n = 1; n <= 12; n += atDepth(2, 1)) {
        const path = join(folder.path, String(n))
        mkdirSync(path)
        const fault = ['-e', `inject=fsync,fdatasync:error=EIO:when=${n}`]
        const command = [process.execPath, script, 'spool', path, '-', '3']
        const { code, output } = await runTraced(command, ['-e', 'trace=fsync,fdatasync', ...fault])
        const markers = [0, 1, 2]
          .map(captureMarker)
          .filter((marker) => output.includes(acknowledgedMarker(marker)))
        const drained = await drain(await openBacklog(path))
        expect(drained.map(({ queue }) => queue).slice(0, markers.length)).toEqual(markers)
        // The letter whose sync failed may or may not be there.
        expect(drained.length - markers.length).toBeLessThanOrEqual(1)
        if (code !== 0) failures += 1
      }
      expect(failures).toBeGreaterThan(0)
    },
    120_000,
  )

  it('rejects the append, keeps the letters before, and writes the next to a new file', async () => {
    await using folder = await aFolder()
    const reports: Report[] = []
    const keeper = new FolderKeeper(folder.path, (report) => reports.push(report))
    const append = (n: number): void => {
      const rows = [[letters[n]!.deadLetteredAt, JSON.stringify({ n })]]
      keeper.run(0, [[n, 'append', { id: systemClock.id(), rows }]])
    }
    append(0)
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
    onTestFinished(() => prepare.mockRestore())
    prepare.mockImplementationOnce(() => {
      throw new Error('disk I/O error')
    })
    append(1)
    append(2)
    keeper.close()
    const message = `the spool ${folder.path} cannot be used: disk I/O error`
    expect(reports).toMatchObject([
      { results: [[0, null]] },
      { results: [], errors: [[1, { code: 'STORE_UNAVAILABLE', message }]] },
      { results: [[2, null]], events: [{ status: { letters: 2 } }] },
    ])
    expect(readdirSync(folder.path)).toHaveLength(2)
  })

  it('acknowledges nothing after its file was removed', async () => {
    await using folder = await aFolder()
    const backlog = await openBacklog(folder.path)
    await backlog.append([letters[0]!])
    for (const file of readdirSync(folder.path)) rmSync(join(folder.path, file))
    await expect(backlog.append([letters[1]!])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await backlog.append([letters[2]!])
    expect(await drain(backlog)).toEqual([letters[2]])
  })
})

type Step =
  | { kind: 'append'; counts: number[] }
  | { kind: 'drain'; upTo: number }
  | { kind: 'reopen' }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('append' as const),
      counts: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ kind: fc.constant('drain' as const), upTo: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ kind: fc.constant('reopen' as const) }),
  ),
  { maxLength: 14 },
)

it('DiskBacklog returns each acknowledged letter once and in order after any sequence of faults', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      await using folder = await aFolder()
      let backlog = await openBacklog(folder.path)
      const acknowledged: string[] = []
      const drained: string[] = []
      for (const step of steps) {
        if (step.kind === 'append') {
          const batches = step.counts.map((count) => Array.from({ length: count }, () => aLetter()))
          await Promise.all(batches.map((batch) => backlog.append(batch)))
          acknowledged.push(...idsOf(batches.flat()))
        } else if (step.kind === 'drain') {
          const entries = await backlog.head(step.upTo)
          drained.push(...idsOf(entries.map(({ letter }) => letter)))
          await backlog.settle(entries, [])
        } else {
          await backlog.close()
          backlog = await openBacklog(folder.path)
        }
      }
      drained.push(...idsOf(await drain(backlog)))
      await backlog.close()
      expect(drained).toEqual(acknowledged)
    }),
    { numRuns: 100 },
  )
}, 60_000)

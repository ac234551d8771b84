import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { join } from 'node:path'
import { copyStore, type CopyReport } from '../../../src/transfer/copy/copy.ts'
import { edit } from '../../../src/letter/moves.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { atDepth } from '../../depth.ts'
import { spawn } from '../../processes.ts'
import { openSqliteBench } from '../../stores/sqlite/sqlite-bench.ts'
import { liveIn } from './lived-in.ts'
import { runCopy, type Place } from './run-copy.ts'

const sqlite: Place = { kind: 'sqlite', open: () => openSqliteBench() }
const memory: Place = {
  kind: 'memory',
  open: async () => {
    const store = memoryStore({ clock: fakeClock() })
    return { store, close: () => store.close() }
  },
}

const pairs: [from: Place, to: Place][] = [
  [sqlite, sqlite],
  [sqlite, memory],
  [memory, sqlite],
]
for (const [from, to] of pairs) runCopy(from, to)

type Bench = Awaited<ReturnType<typeof openSqliteBench>>
const source = 'test:source'

describe('copyStore that is killed', () => {
  let from: Bench
  let to: Bench
  let undisturbed: CopyReport
  beforeAll(async () => {
    from = await openSqliteBench()
    await liveIn(from.store)
    await from.store.add(Array.from({ length: 900 }, () => aLetter()))
    const alone = await openSqliteBench()
    undisturbed = await copyStore(from.store, alone.store, { source })
    await alone.close()
  })
  afterAll(() => from.close())
  beforeEach(async () => {
    to = await openSqliteBench()
  })
  afterEach(() => to.close())

  /**
   * Runs a copy in a process that is killed at its nth call of a method of the target, before or
   * after the call took effect.
   */
  function killedCopy(...at: string[]): Promise<NodeJS.Signals | null> {
    const script = join(import.meta.dirname, 'child.ts')
    const child = spawn(process.execPath, [script, from.path, to.path, source, ...at], {
      stdio: 'inherit',
    })
    return new Promise((resolve) => child.once('close', (_, signal) => resolve(signal)))
  }

  const points: [[string, string, string]][] = [
    [['put', '1', 'before']],
    [['keep', '2', 'after']],
    [['put', '3', 'before']],
    [['put', '3', 'after']],
    [['keepTotals', '1', 'before']],
    [['keepTotals', '1', 'after']],
    [['stored', '2', 'before']],
  ]
  /** Each kind once, before and after. */
  const inShort = [1, 2, 5, 6].map((index) => points[index]!)
  it.each(atDepth(inShort, points))(
    'ends with the same result when it runs again: %j',
    { timeout: 60_000 },
    async (at) => {
      expect(await killedCopy(...at)).toBe('SIGKILL')
      const report = await copyStore(from.store, to.store, { source })
      expect(report).toMatchObject({ ok: true })
      expect(report.verdict).toEqual(undisturbed.verdict)
      if (at[0] !== 'put' || at[1] !== '1') expect(report.copied).toBeLessThan(undisturbed.copied)
    },
  )
})

describe('copyStore of damaged letters', () => {
  let from: Bench
  let letters: DeadLetter[]
  const to = () => memoryStore({ clock: fakeClock() })
  beforeEach(async () => {
    from = await openSqliteBench()
    letters = [1, 2, 3].map(() => aLetter({ metadata: { a: 1 } }))
    await from.store.add(letters)
  })
  afterEach(() => from.close())

  function damage(sql: string): void {
    const file = new DatabaseSync(from.path)
    file.prepare(sql).run(letters[1]!.id)
    file.close()
  }

  const byId = "WHERE id = unhex(?, '-')"
  const seq = `(SELECT seq FROM letters ${byId})`

  it.each([
    [`UPDATE letters SET metadata = '{' ${byId}`],
    [`UPDATE bodies SET bytes = x'00' WHERE seq = ${seq}`],
    [`DELETE FROM bodies WHERE seq = ${seq}`],
  ])('sets them aside, reports them, and copies the others: %s', async (sql) => {
    damage(sql)
    const target = to()
    const report = await copyStore(from.store, target, { source })
    expect(report).toMatchObject({ ok: false, copied: 2, verdict: { letters: 2 } })
    const { damaged, differences } = report.verdict!
    expect(damaged).toEqual({ count: 1, first: [{ id: letters[1]!.id, why: expect.any(String) }] })
    expect(differences.count).toBe(0)
    const aside = await target.records.get('damaged', letters[1]!.id)
    expect(aside!.value).toMatchObject({
      letter: { id: letters[1]!.id, corrupt: damaged.first[0]!.why },
    })
    expect(await target.get([letters[1]!.id])).toEqual([])
  })

  it('treats a letter as damaged when its captured payload is, even after an edit', async () => {
    const { at } = letters[1]!.failure
    const payload = { ...letters[1]!.payload, version: 2 }
    await from.store.apply([edit(letters[1]!, { at, actor: 'a', guard: 'version' }, { payload })])
    damage(`UPDATE bodies SET bytes = x'00' WHERE seq = ${seq}`)
    const report = await copyStore(from.store, to(), { source })
    expect(report.verdict!.damaged.first).toEqual([
      { id: letters[1]!.id, why: expect.stringContaining('captured') },
    ])
  })

  it('reports a letter that no query returns', async () => {
    damage(`UPDATE letters SET state = 7 ${byId}`)
    const report = await copyStore(from.store, to(), { source })
    expect(report.ok).toBe(false)
    expect(report.verdict!.differences.first).toContainEqual({
      kind: 'count',
      name: 'state pending',
      why: '3 in the source, 2 in the target',
    })
  })

  it('reports a letter whose older version was copied, and sets the readable part aside', async () => {
    const target = to()
    await copyStore(from.store, target, { source })
    const { at } = letters[1]!.failure
    const payload = { ...letters[1]!.payload, version: 2 }
    await from.store.apply([edit(letters[1]!, { at, actor: 'a', guard: 'version' }, { payload })])
    damage(`UPDATE letters SET metadata = '{' ${byId}`)
    for (const verifyOnly of [false, true]) {
      const report = await copyStore(from.store, target, { source, verifyOnly })
      expect(report).toMatchObject({ ok: false, copied: 0, verdict: { letters: 2 } })
      expect(report.verdict!.damaged).toMatchObject({ count: 1, first: [{ id: letters[1]!.id }] })
    }
    expect(await target.records.get('damaged', letters[1]!.id)).toBeDefined()
    expect(await target.get([letters[1]!.id])).toEqual([letters[1]])
  })

  it('keeps an intact copy that was made before the source was damaged', async () => {
    const target = to()
    await copyStore(from.store, target, { source })
    damage(`UPDATE letters SET metadata = '{' ${byId}`)
    const report = await copyStore(from.store, target, { source })
    expect(report).toMatchObject({ ok: true, copied: 0, verdict: { letters: 2 } })
    expect(await target.get([letters[1]!.id])).toEqual([letters[1]])
  })
})

it('copyStore rejects an unknown option', async () => {
  const options = { source, verify: true } as never
  await expect(copyStore(memoryStore(), memoryStore(), options)).rejects.toThrow(
    'unknown key "verify" in copy options',
  )
})

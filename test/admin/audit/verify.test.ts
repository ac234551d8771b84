import { describe, expect, it } from 'vitest'
import { AuditLog } from '../../../src/admin/audit/audit-log.ts'
import { genesis, link, type AuditDraft } from '../../../src/admin/audit/chain.ts'
import type { AuditEntry } from '../../../src/letter/audit.ts'
import type { Json } from '../../../src/letter/letter.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { Records } from '../../../src/store.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import { eachStore } from '../../each-store.ts'

const dayMs = 86_400_000
const idOf = (seq: number): string => String(seq).padStart(12, '0')

/** Acts one after the other, so that each record has one entry. */
async function note(log: AuditLog, count: number): Promise<void> {
  for (let n = 0; n < count; n++)
    await log.act(
      { action: 'note', what: { kind: 'letter', id: 'a' }, actor: 'mia' },
      async () => {},
    )
}

async function entryOf(records: Records, seq: number): Promise<AuditEntry> {
  const record = await records.get('audit', idOf(seq))
  return (record!.value as unknown as { entries: AuditEntry[] }).entries[0]!
}

async function write(records: Records, seq: number, entries: AuditEntry[]): Promise<void> {
  await records.put('audit', idOf(seq), { entries } as unknown as Json)
}

/** An entry with this change and a valid hash of its own. */
function forge(entry: AuditEntry, change: Partial<AuditDraft>): AuditEntry {
  const { seq, prevHash } = entry
  return link({ seq: seq - 1, hash: prevHash }, [{ ...draftOf(entry), ...change }])[0]!
}

function draftOf(entry: AuditEntry): AuditDraft {
  const { seq: _, prevHash: __, hash: ___, ...draft } = entry
  return draft
}

type Tamper = (records: Records) => Promise<unknown>

/** Manipulations of a log with 6 entries, and the first entry that is wrong then. */
const tampers: [name: string, firstBad: number, tamper: Tamper][] = [
  [
    'changed',
    3,
    async (records) => write(records, 3, [{ ...(await entryOf(records, 3)), actor: 'eve' }]),
  ],
  [
    'changed, with a new hash',
    4,
    async (records) => write(records, 3, [forge(await entryOf(records, 3), { actor: 'eve' })]),
  ],
  ['removed', 3, (records) => records.remove('audit', idOf(3))],
  ['removed at the beginning', 1, (records) => records.remove('audit', idOf(1))],
  [
    'inserted into a record',
    5,
    async (records) => {
      const third = await entryOf(records, 3)
      const [more] = link(third, [{ ...draftOf(third), actor: 'eve' }])
      await write(records, 3, [third, more!])
    },
  ],
  [
    'inserted as a record',
    4,
    async (records) => {
      const entries = [await entryOf(records, 3)]
      await records.put('audit', `${idOf(3)}a`, { entries } as unknown as Json)
    },
  ],
  [
    'reordered',
    3,
    async (records) => {
      const [third, fourth] = [await entryOf(records, 3), await entryOf(records, 4)]
      await write(records, 3, [fourth])
      await write(records, 4, [third])
    },
  ],
  ['damaged', 3, (records) => records.put('audit', idOf(3), 'nothing')],
  [
    'removed at the end',
    5,
    async (records) => {
      await records.remove('audit', idOf(5))
      await records.remove('audit', idOf(6))
    },
  ],
  [
    'replaced up to the end by a fork',
    6,
    async (records) => {
      const fifth = forge(await entryOf(records, 5), { actor: 'eve' })
      await write(records, 5, [fifth])
      await write(records, 6, link(fifth, [draftOf(await entryOf(records, 6))]))
    },
  ],
  ['left without a head', 7, (records) => records.remove('audit-position', 'head')],
  [
    'cut at the beginning without a prune',
    1,
    async (records) => {
      const { seq, hash } = await entryOf(records, 2)
      await records.put('audit-position', 'pruned', { seq, hash })
      for (const gone of [1, 2]) await records.remove('audit', idOf(gone))
    },
  ],
]

describe.each(eachStore)('the verification of the audit log on %s', (_, open) => {
  async function withLog(
    use: (log: AuditLog, records: Records, clock: FakeClock) => Promise<void>,
  ): Promise<void> {
    const clock = fakeClock()
    const { store, close } = await open(clock)
    try {
      await use(new AuditLog({ store, clock }), store.records, clock)
    } finally {
      await close()
    }
  }

  it('accepts an empty log', () =>
    withLog(async (log) => {
      expect(await log.verify()).toEqual({ ok: true, entries: 0, head: genesis, unfinished: [] })
    }))

  it.each(tampers)('detects entries that are %s', (__, firstBad, tamper) =>
    withLog(async (log, records) => {
      await note(log, 3)
      expect(await log.verify()).toMatchObject({ ok: true, entries: 6 })
      await tamper(records)
      const report = await log.verify()
      expect(report).toMatchObject({ ok: false, firstBad, why: expect.any(String) })
    }),
  )

  it('detects a log that was rewritten as a whole, by a head that was kept elsewhere', () =>
    withLog(async (log, records) => {
      await note(log, 2)
      const { head } = await log.verify()
      const entries = await Promise.all([1, 2, 3, 4].map((seq) => entryOf(records, seq)))
      const rewritten = link(
        genesis,
        entries.map((entry) => ({ ...draftOf(entry), actor: 'eve' })),
      )
      for (const entry of rewritten) await write(records, entry.seq, [entry])
      const { seq, hash } = rewritten.at(-1)!
      await records.put('audit-position', 'head', { seq, hash })
      expect(await log.verify()).toMatchObject({ ok: true })
      expect(await log.verify(head)).toMatchObject({ ok: false, firstBad: 4 })
      await expect(log.verify({ seq: 0, hash: 'x' })).rejects.toMatchObject({
        code: 'INVALID_INPUT',
      })
    }))

  it('still reports a damaged entry after further actions', () =>
    withLog(async (log, records) => {
      await note(log, 2)
      await records.put('audit', idOf(4), 'nothing')
      await records.remove('audit-position', 'head')
      await note(log, 2)
      expect(await log.verify()).toMatchObject({ ok: false, firstBad: 4 })
      expect((await log.find({ order: 'oldest' })).items.map(({ seq }) => seq)).toEqual([
        1, 2, 3, 5, 6, 7, 8,
      ])
    }))

  it('accepts a log whose old entries were pruned', () =>
    withLog(async (log, _records, clock) => {
      await note(log, 3)
      await clock.advance(10 * dayMs)
      await note(log, 1)
      const before = toTimestamp(clock.now() - 5 * dayMs)
      expect(await log.prune({ before, by: 'mia' })).toBe(6)
      expect(await log.prune({ before, by: 'mia' })).toBe(0)
      const report = await log.verify()
      expect(report).toMatchObject({ ok: true, entries: 6, pruned: { seq: 6 }, head: { seq: 12 } })
      expect((await log.find({ order: 'oldest' })).items[0]).toMatchObject({ seq: 7 })
      const lines: string[] = []
      for await (const line of log.lines()) lines.push(line)
      const exported = lines.map((line) => (JSON.parse(line) as AuditEntry).seq)
      expect(exported).toEqual([7, 8, 9, 10, 11, 12])
    }))

  it('accepts a log after a prune that was interrupted', () =>
    withLog(async (log, records, clock) => {
      await note(log, 2)
      const second = await records.get('audit', idOf(2))
      await clock.advance(10 * dayMs)
      await log.prune({ before: toTimestamp(clock.now() - dayMs), by: 'mia' })
      await records.put('audit', idOf(2), second!.value)
      expect(await log.verify()).toMatchObject({ ok: true, pruned: { seq: 4 } })
      await log.prune({ before: toTimestamp(clock.now() - dayMs), by: 'mia' })
      expect(await records.get('audit', idOf(2))).toBeUndefined()
    }))

  it('refuses to prune entries of the last day', () =>
    withLog(async (log, _records, clock) => {
      const before = toTimestamp(clock.now())
      await expect(log.prune({ before })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(log.prune({} as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }))
})

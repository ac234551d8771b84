import { describe, expect, it } from 'vitest'
import type { AuditEntry, AuditReport } from '../../../src/letter/audit.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { aFolder, aStoreFile, redrive } from '../run-cli.ts'

const folder = aFolder()

describe('redrive audit', () => {
  it('lists, exports and verifies what the command line did', async () => {
    const letter = aLetter({ state: 'pending' })
    const store = await aStoreFile(folder, [letter])
    await redrive(['park', letter.id, '--by', 'mia', '--store', store])
    const list = await redrive(['audit', 'list', '--store', store], { env: { COLUMNS: '80' } })
    expect(list.out).toMatch(/mia +park +done +letter/)
    for (const line of list.out.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    const exported = await redrive(['audit', 'export', '--store', store])
    const entries = exported.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditEntry)
    expect(entries).toMatchObject([
      { seq: 1, actor: 'mia', via: 'cli', action: 'park', outcome: 'started' },
      { seq: 2, actor: 'mia', via: 'cli', action: 'park', outcome: 'done' },
    ])
    const verified = await redrive(['audit', 'verify', '--json', '--store', store])
    expect(verified.exit).toBe(0)
    expect(JSON.parse(verified.out)).toMatchObject({ ok: true, entries: 2 } as AuditReport)
  })

  it('has the import of a file, and the bulk action of a filter', async () => {
    const source = await aStoreFile(folder, [aLetter({ state: 'pending' })])
    const lines = (await redrive(['export', '--store', source])).out
    const store = await aStoreFile(folder, [])
    await redrive(['import', '-', '--store', store], { input: lines })
    await redrive(['archive', '--all', '--yes', '--by', 'mia', '--store', store])
    const { out } = await redrive(['audit', 'list', '--json', '--store', store])
    const entries = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditEntry)
    expect(entries).toMatchObject([
      { actor: 'mia', via: 'cli', action: 'bulk-run', outcome: 'done' },
      { actor: 'mia', via: 'cli', action: 'bulk-plan', outcome: 'done' },
      { via: 'cli', action: 'import', outcome: 'done', after: { added: 1 } },
    ])
  })

  it('exits with 1 when an entry is missing, and names it', async () => {
    const letter = aLetter({ state: 'pending' })
    const store = await aStoreFile(folder, [letter])
    await redrive(['park', letter.id, '--store', store])
    const opened = sqliteStore({ path: store.slice('sqlite:'.length) })
    await opened.open()
    await opened.records.remove('audit', '000000000002')
    await opened.close()
    const { out, exit } = await redrive(['audit', 'verify', '--store', store])
    expect(out).toContain('entries 2 to 2 are missing at the end of the log')
    expect(exit).toBe(1)
  })
})

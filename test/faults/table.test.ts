import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/operating/faults.md'), 'utf8')

const rows = page
  .split('\n')
  .filter((line) => /^\| [CDE]\d/.test(line))
  .map((line) => {
    const [id, fault, stores, holds] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    return { id: id!, fault: fault!, stores: stores!.split(', '), holds: holds! }
  })

/** Tests as the page names them: a file and a title. */
const named = rows.flatMap(({ id, holds }) =>
  [...holds.matchAll(/`([^`]+\.ts)` "([^"]+)"/g)].map(
    ([, file, title]) => [id, file!, title!] as const,
  ),
)

const ids = [
  ...Array.from({ length: 18 }, (_, n) => `C${n + 1}`),
  ...Array.from({ length: 13 }, (_, n) => `D${n + 1}`),
  ...Array.from({ length: 11 }, (_, n) => `E${n + 1}`),
]

describe('the table of faults', () => {
  it.each(named)('%s: %s has the test "%s"', (_, file, title) => {
    expect(existsSync(join(root, file)), file).toBe(true)
    const text = readFileSync(join(root, file), 'utf8').replaceAll("\\'", "'")
    expect(text.includes(title), title).toBe(true)
  })

  it.each(ids)('says of %s for every store what holds it, or why nothing does', (id) => {
    const stores = new Set(rows.filter((row) => row.id === id).flatMap((row) => row.stores))
    expect([...stores].sort()).toEqual(['opensearch', 'postgres', 'redis', 'sqlite'])
  })

  it('has the rows in their order, each with something said', () => {
    expect([...new Set(rows.map(({ id }) => id))]).toEqual(ids)
    expect(rows.filter(({ fault, holds }) => fault === '' || holds === '')).toEqual([])
  })
})

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/operating/faults.md'), 'utf8')

/** Each fault is a heading such as "### C1: …", followed by a table of stores or mailboxes. */
const rows = page.split(/^### /m).flatMap((section) => {
  const [, id, fault] = /^([CDEH]\d+): (.*)/.exec(section) ?? []
  if (id === undefined) return []
  return [...section.matchAll(/^\| ([a-z, ]+?) +\| (.*?) +\|$/gm)]
    .slice(1)
    .map(([, kinds, evidence]) => ({
      id,
      fault: fault!,
      kinds: kinds!.split(', '),
      evidence: evidence!,
    }))
})

/** Tests as the page names them: a file and a title. */
const named = rows.flatMap(({ id, evidence }) =>
  [...evidence.matchAll(/`([^`]+\.ts)` "([^"]+)"/g)].map(
    ([, file, title]) => [id, file!, title!] as const,
  ),
)

const stores = ['opensearch', 'postgres', 'redis', 'sqlite']
const mailboxes = ['kafka', 'nats', 'postgres', 'rabbitmq', 'redis', 'sqlite', 'sqs']

const ids = [
  ...Array.from({ length: 18 }, (_, n) => `C${n + 1}`),
  ...Array.from({ length: 13 }, (_, n) => `D${n + 1}`),
  ...Array.from({ length: 11 }, (_, n) => `E${n + 1}`),
  ...Array.from({ length: 12 }, (_, n) => `H${n + 1}`),
]

describe('the table of faults', () => {
  it.each(named)('%s: %s has the test "%s"', (_, file, title) => {
    expect(existsSync(join(root, file)), file).toBe(true)
    const text = readFileSync(join(root, file), 'utf8').replaceAll("\\'", "'")
    expect(text.includes(title), title).toBe(true)
  })

  it.each(ids)('names a test or a reason for %s and every store or mailbox', (id) => {
    const kinds = new Set(rows.filter((row) => row.id === id).flatMap((row) => row.kinds))
    expect([...kinds].sort()).toEqual(id.startsWith('H') ? mailboxes : stores)
  })

  it('has the rows in order, none of them empty', () => {
    expect([...new Set(rows.map(({ id }) => id))]).toEqual(ids)
    expect(rows.filter(({ fault, evidence }) => fault === '' || evidence === '')).toEqual([])
  })
})

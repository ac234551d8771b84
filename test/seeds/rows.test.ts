import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { rows } from './rows.ts'

const root = join(import.meta.dirname, '../..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll("\\'", "'")

const clauses = rows.flatMap(({ id, clauses: all }) => all.map((clause) => ({ id, ...clause })))
const named = clauses.flatMap(({ id, text, tests }) =>
  tests.map(({ file, title }) => [id, text, file, title] as const),
)

describe('the requirements of the founding designs', () => {
  it.each(named)('%s: %s is proven by %s "%s"', (_id, _text, file, title) => {
    expect(read(file).includes(title), title).toBe(true)
  })

  it('have a test for every clause', () => {
    const sources = globSync('test/{seeds,contract}/*.ts', { cwd: root })
      .filter((file) => !/rows\.(test\.)?ts$/.test(file))
      .map(read)
    const lacking = clauses.filter(
      ({ id, text, tests }) =>
        tests.length === 0 &&
        !sources.some((source) => source.includes(`'${id}'`) && source.includes(text)),
    )
    // These have a test per broker, whose title is made from the name of the broker.
    const unproven = lacking.filter(({ text }) => !text.endsWith('pass one contract suite'))
    expect(unproven.map(({ id, text }) => `${id}: ${text}`)).toEqual([])
  })

  it('keep their number', () => {
    expect(rows).toHaveLength(47)
    expect(clauses).toHaveLength(216)
  })
})

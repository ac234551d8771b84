import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configJsonSchema, configNode } from '../../src/config/json-schema.ts'
import { configPage, rowsOf } from '../../src/config/reference.ts'

const read = (path: string): string =>
  readFileSync(join(import.meta.dirname, '../../docs/reference', path), 'utf8')

describe('configPage', () => {
  it('equals docs/reference/config.md (npm run docs)', () => {
    expect(read('config.md')).toBe(`${configPage()}\n`)
  })

  it('has its schema in docs/reference/config.schema.json (npm run docs)', () => {
    expect(JSON.parse(read('config.schema.json'))).toEqual(configJsonSchema())
  })

  it('describes every key', () => {
    const rows = Object.entries(configNode.properties ?? {}).flatMap(([key, node]) =>
      rowsOf(key, node),
    )
    expect(rows.length).toBeGreaterThan(60)
    expect(rows.filter(({ node }) => !node.description).map(({ key }) => key)).toEqual([])
  })
})

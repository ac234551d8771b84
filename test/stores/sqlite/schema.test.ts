import { describe, expect, it } from 'vitest'
import { migrations, schemaVersion } from '../../../src/stores/sqlite/schema.ts'

describe('migrations', () => {
  it('lead to the schema version', () => {
    expect(migrations).toHaveLength(schemaVersion)
  })
})

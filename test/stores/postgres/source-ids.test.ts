import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fillSourceIds } from '../../../src/stores/postgres/source-ids.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { findsBySource, sourcedLetters } from '../sourced-letters.ts'
import { ask, missing, url } from './postgres-bench.ts'

describe.skipIf(missing)(fillSourceIds.name, () => {
  let place: Place

  beforeEach(() => {
    place = postgresPlace(url)
  })
  afterEach(() => place.clear())

  it.each([{}, { partitions: 'month' as const }])(
    'makes letters of schema 1 findable by their source ids: %j',
    async (options) => {
      const open = async () => {
        const store = postgresStore({ url, schema: place.name, ...options })
        await store.open()
        return store
      }
      const letters = sourcedLetters()
      const before = await open()
      await before.add(letters)
      await before.close()
      const schema = `"${place.name}"`
      await ask(`ALTER TABLE ${schema}.letters DROP COLUMN source_id`)
      await ask(`DELETE FROM ${schema}.meta WHERE key = 'source_ids'`)
      await ask(`UPDATE ${schema}.meta SET value = '1' WHERE key = 'schema'`)
      const last = letters.at(-1)!.id
      await ask(`UPDATE ${schema}.bodies SET origin = '"taskId": not JSON' WHERE id = '${last}'`)
      const stores = await Promise.all([open(), open()])
      for (const store of stores) await findsBySource(store, letters)
      const indexes = await ask(
        `SELECT indexdef FROM pg_indexes WHERE schemaname = '${place.name}' AND indexname = 'letters_source'`,
      )
      expect(indexes[0]![0]).toContain('(source_id, id) WHERE (source_id IS NOT NULL)')
      await Promise.all(stores.map((store) => store.close()))
    },
    60_000,
  )
})

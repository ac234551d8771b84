import { afterAll } from 'vitest'
import { postgresMailbox } from '../../../src/mailboxes/postgres/postgres.ts'
import { postgresPlace } from '../../servers/places.ts'
import { openMailboxBench } from '../bench.ts'

/**
 * Returns a function that opens benches in one schema, which is dropped after the test file: its
 * migrations take longer than most checks. Their time is the server's.
 */
export function postgresBenches(url: string): () => ReturnType<typeof openMailboxBench> {
  const place = postgresPlace(url)
  afterAll(() => place.clear())
  let count = 0
  return () =>
    openMailboxBench({
      prefix: `${(count += 1)} `,
      make: (name, resolver, more) =>
        postgresMailbox({ url, schema: place.name, name, resolver, ...more }),
    })
}

import { postgresMailbox } from '../../../src/mailboxes/postgres/postgres.ts'
import { postgresPlace } from '../../servers/places.ts'
import { openMailboxBench } from '../bench.ts'

/** Mailboxes in a schema of their own. Their time is the server's. */
export async function openPostgresBench(url: string): ReturnType<typeof openMailboxBench> {
  const place = postgresPlace(url)
  return openMailboxBench({
    make: (name, resolver, more) =>
      postgresMailbox({ url, schema: place.name, name, resolver, ...more }),
    leave: () => place.clear(),
  })
}

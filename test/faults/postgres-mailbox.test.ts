import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { postgresPlace } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'

const { url, missing } = backend('postgres')

describe.skipIf(missing)('a mailbox in PostgreSQL', () => {
  it('delivers a message that was numbered first and committed last', async () => {
    const place = postgresPlace(url)
    const mailbox = await openMailbox(`${url}?schema=${place.name}#work`)
    const slow = new Client({ connectionString: url })
    await slow.connect()
    try {
      const values = async (): Promise<unknown[]> => {
        const found = await mailbox.receive({ max: 10 })
        await Promise.all(found.map((message) => message.acknowledge()))
        return found.map((message) => message.value())
      }
      await mailbox.send('as any other')
      await slow.query(`set search_path to "${place.name}"`)
      await slow.query('begin')
      // The same in all but its number and id, as another process would have added it.
      await slow.query(`
        insert into messages (seq, place, id, mailbox, held, deliveries, failures, enqueued_at, expires_at, about, bytes)
        select nextval('places'), nextval('places'), 'slow', mailbox, held, deliveries, failures, enqueued_at, expires_at, about, '"slow"'
        from messages`)
      await mailbox.send('later')
      expect(await values()).toEqual(['as any other', 'later'])
      expect(await values()).toEqual([])
      await slow.query('commit')
      expect(await values()).toEqual(['slow'])
    } finally {
      await slow.end()
      await mailbox.close()
      await place.clear()
    }
  })
})

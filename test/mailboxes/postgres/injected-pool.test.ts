import { Client, Pool } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { postgresMailbox } from '../../../src/mailboxes/postgres/postgres.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('postgres')

describe.skipIf(missing)('postgresMailbox with a pool of the application', () => {
  let pool: Pool
  let place: Place
  let mailbox: Mailbox

  beforeAll(() => {
    place = postgresPlace(url)
  })
  afterAll(() => place.clear())
  beforeEach(async () => {
    pool = new Pool({ connectionString: url, max: 1 })
    mailbox = postgresMailbox({ pool, schema: place.name, name: 'work' })
    await mailbox.open()
  })
  afterEach(async () => {
    await mailbox.close()
    await pool.end()
  })

  it('delivers messages to a receiver that waits, over a pool of one connection', async () => {
    const receiving = mailbox.receive({ waitSeconds: 20 })
    await expect.poll(async () => (await mailbox.health()).checks['wakeups']).toBe('listening')
    await mailbox.send({ n: 1 })
    const [message] = await receiving
    expect(message!.value()).toEqual({ n: 1 })
    await message!.acknowledge()
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('leaves the pool open when it closes, and its sessions as they were', async () => {
    await mailbox.send('a')
    await mailbox.close()
    const show = `SELECT current_setting('enable_seqscan'), current_setting('plan_cache_mode')`
    expect((await pool.query({ text: show, rowMode: 'array' })).rows).toEqual([['on', 'auto']])
  })

  it('rejects another object, url and pool together, and neither of them', () => {
    const invalid = expect.objectContaining({ code: 'INVALID_CONFIG' })
    const client = new Client() as unknown as Pool
    expect(() => postgresMailbox({ pool: client, name: 'm' })).toThrow(invalid)
    expect(() => postgresMailbox({ url, pool, name: 'm' })).toThrow(invalid)
    expect(() => postgresMailbox({ name: 'm' })).toThrow(invalid)
  })
})

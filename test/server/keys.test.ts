import { describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { readAll, withServerInEachTest, type TestServer } from './a-server.ts'

const one = Buffer.alloc(32, 1).toString('base64')
const two = Buffer.alloc(32, 2).toString('base64')

let server: TestServer

withServerInEachTest((started) => (server = started), {
  encryption: { keys: { one, two }, current: 'two' },
})

describe('rotation of keys over HTTP', () => {
  it('encrypts letters with the current key, and the last line is the result', async () => {
    const encryption = { keys: { one }, current: 'one' }
    const earlier = await DeadLetterQueue.open(server.store, { clock: server.clock, encryption })
    const failure = { operation: { type: 'orders', payload: { card: '4111' } }, error: new Error() }
    await earlier.enqueueAll(Array.from({ length: 250 }, () => failure))
    const client = await server.client({ name: 'bob' })
    const lines = await readAll(client.rotateKeys())
    expect(lines.length).toBeGreaterThan(1)
    expect(lines.at(-1)).toMatchObject({ current: 'two', rotated: 250, skipped: 0, failed: 0 })
    expect((await server.dlq.keyUse()).letters).toEqual({ two: 250 })
    const { items } = await client.listAudit({ action: 'keys-rotate', outcome: 'done' })
    expect(items).toMatchObject([{ actor: 'bob', via: 'http', after: { rotated: 250 } }])
  })
})

import { AckPolicy, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { natsTap } from '../../../src/taps/nats.ts'
import type { ForeignLetter } from '../../../src/taps/tap.ts'
import { backend, freshName } from '../../servers/servers.ts'
import { inbox } from '../../taps/inbox.ts'
import { java } from '../java.ts'

const { url } = backend('nats')
const program = join(import.meta.dirname, 'Term.java')

async function run(...args: string[]): Promise<Record<string, unknown>> {
  await using client = java('nats', program, [url, ...args])
  return await client.next()
}

describe('a message that the Java client of NATS ended with TERM', () => {
  const stream = freshName()
  let connection: NatsConnection

  beforeAll(async () => {
    connection = await connect({ servers: url })
    const { streams, consumers } = await jetstreamManager(connection)
    await streams.add({ name: stream, subjects: [`${stream}.>`] })
    await consumers.add(stream, { durable_name: 'worker', ack_policy: AckPolicy.Explicit })
  })

  afterAll(async () => {
    const { streams } = await jetstreamManager(connection)
    await streams.delete(stream)
    await connection.close()
  })

  it('becomes a letter, and returns with unchanged headers', async () => {
    const letters = inbox<ForeignLetter>()
    const tap = natsTap({ url, stream, keep: async (letter) => letters.put(letter) })
    await tap.start()
    try {
      expect(await run('term', stream)).toEqual({ terminated: 1 })
      const letter = await letters.next()
      expect(letter).toMatchObject({ source: `${stream}/worker`, headers: { via: 'a, b, c' } })
      expect(letter.reason).toContain('TERM')
      await tap.returnToSource(letter, 1)
      expect(await run('get', stream, '2')).toEqual({ via: 'a|b, c', type: 'null' })
    } finally {
      await tap.stop()
    }
  })
})

import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { natsMailbox } from '../../../src/mailboxes/nats/nats.ts'
import { natsPlace } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('nats')

describe.skipIf(missing)('natsMailbox with a connection of the application', () => {
  let client: NatsConnection
  let place: Place
  let mailbox: Mailbox

  beforeEach(async () => {
    place = natsPlace(url)
    client = await connect({ servers: url })
    mailbox = natsMailbox({ client, prefix: place.name, name: 'work' })
    await mailbox.open()
  })
  afterEach(async () => {
    await mailbox.close()
    await client.close()
    await place.clear()
  })

  it('delivers messages to a receiver that waits', async () => {
    const receiving = mailbox.receive({ waitSeconds: 20 })
    await mailbox.send({ n: 1 })
    const [message] = await receiving
    expect(message!.value()).toEqual({ n: 1 })
    await message!.acknowledge()
  })

  it('leaves the connection open when it closes', async () => {
    await mailbox.send('a')
    await mailbox.close()
    expect(client.isClosed()).toBe(false)
    await client.flush()
  })

  it('rejects another object, url and client together, and neither of them', () => {
    const invalid = expect.objectContaining({ code: 'INVALID_CONFIG' })
    const other = {} as NatsConnection
    expect(() => natsMailbox({ client: other, name: 'm' })).toThrow(invalid)
    expect(() => natsMailbox({ url, client, name: 'm' })).toThrow(invalid)
    expect(() => natsMailbox({ name: 'm' })).toThrow(invalid)
  })
})

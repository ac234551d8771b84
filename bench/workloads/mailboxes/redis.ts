import { createClient } from 'redis'
import { redisMailbox } from '../../../src/mailboxes/redis/redis.ts'
import { redisPlace } from '../../../test/servers/places.ts'
import { backend } from '../../../test/servers/servers.ts'
import { body, crew, type Pair, type Raw } from './pair.ts'

export async function open(): Promise<Pair> {
  const { url } = backend('redis')
  const place = redisPlace(url)
  const mailbox = redisMailbox({ url, prefix: place.name, name: 'bench' })
  const client = await connected(url)
  const close = async (): Promise<void> => {
    await mailbox.close()
    client.destroy()
    await place.clear()
  }
  try {
    await mailbox.open()
    return { mailbox, raw: rawOn(client, place.name), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function connected(url: string) {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  return client
}

/**
 * The two lists of a reliable queue, on one connection: a message is pushed, moved to the list of those in work, and removed from there
 * by its value. The client sends what is asked for in one turn together. It does less than a mailbox must: nothing
 * would bring back what a dead worker had, and there are no ids, delays, counts, retention or receipts.
 */
function rawOn(client: Awaited<ReturnType<typeof connected>>, prefix: string): Raw {
  const [waiting, working] = [`${prefix}:raw`, `${prefix}:raw:working`]
  const trip = async (): Promise<void> => {
    await client.lPush(waiting, body())
    const taken = await client.lMove(waiting, working, 'RIGHT', 'LEFT')
    await client.lRem(working, -1, taken!)
  }
  return (messages, together) => crew(messages, together, trip)
}

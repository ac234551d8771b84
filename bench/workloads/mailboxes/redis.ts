import { createClient } from 'redis'
import { redisMailbox } from '../../../src/mailboxes/redis/redis.ts'
import { redisPlace } from '../../../test/servers/places.ts'
import { backend } from '../../../test/servers/servers.ts'
import { body, runWorkers, type Pair, type Raw } from './pair.ts'

export async function open(): Promise<Pair> {
  const { url } = backend('redis')
  const place = redisPlace(url)
  const mailbox = redisMailbox({ url, prefix: place.name, name: 'bench' })
  const client = await connectClient(url)
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

async function connectClient(url: string) {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  return client
}

/**
 * The two lists of a reliable queue, on one connection: a message is pushed, moved to the
 * in-progress list, and removed from there by its value. The client pipelines the commands of one
 * tick. A mailbox does more: recovery from dead workers, ids, delays, counts, retention and
 * receipts.
 */
function rawOn(client: Awaited<ReturnType<typeof connectClient>>, prefix: string): Raw {
  const [waiting, working] = [`${prefix}:raw`, `${prefix}:raw:working`]
  const trip = async (): Promise<void> => {
    await client.lPush(waiting, body())
    const taken = await client.lMove(waiting, working, 'RIGHT', 'LEFT')
    await client.lRem(working, -1, taken!)
  }
  return (messages, inFlight) => runWorkers(messages, inFlight, trip)
}

import { join } from 'node:path'
import { openMailbox } from '../../../src/connect/mailbox.ts'
import { createProxy, type Proxy } from '../../faults/proxy.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { privatePostgres, privateRabbitmq, privateRedis } from '../../servers/private.ts'
import { backoffMs, names } from './child.ts'

export const brokers = ['sqlite', 'postgres', 'redis', 'rabbitmq'] as const
export type Broker = (typeof brokers)[number]

/** Where the messages of a run are, and the ways of its processes to them. */
export interface Scene {
  broker: Broker
  /** Straight to the broker, for those who judge. */
  url: string
  /** The ways of the processes, one for each; none where the broker is a file. */
  links: Proxy[]
  urlFor: (process: number) => string
  /** It may be stopped, being ours. */
  server?: PrivateServer
  end: () => Promise<void>
}

const own = { postgres: privatePostgres, redis: privateRedis, rabbitmq: privateRabbitmq }

/** `sqlite:FILE`, or the name of a server, of which the run has its own. */
export async function setScene(
  mailbox: string | undefined,
  folder: string,
  processes: number,
): Promise<Scene> {
  if (mailbox === 'postgres' || mailbox === 'redis' || mailbox === 'rabbitmq')
    return onServer(mailbox, await own[mailbox](), processes)
  const url = mailbox ?? `sqlite:${join(folder, 'mail.db')}`
  await makeMailboxes(url)
  return { broker: 'sqlite', url, links: [], urlFor: () => url, end: () => Promise.resolve() }
}

async function onServer(
  broker: Exclude<Broker, 'sqlite'>,
  server: PrivateServer,
  processes: number,
): Promise<Scene> {
  const { url } = server
  try {
    await makeMailboxes(url)
    // RabbitMQ writes the names of new queues late, and would lose them in a crash that comes too soon.
    if (broker === 'rabbitmq') {
      await server.stop()
      await server.start()
    }
    const links = await Promise.all(
      Array.from({ length: processes }, (_, process) => createProxy(url, process)),
    )
    return {
      broker,
      url,
      links,
      server,
      urlFor: (process) => links[process]!.through(url),
      end: async () => {
        for (const link of links) link.close()
        await server.remove()
      },
    }
  } catch (error) {
    await server.remove()
    throw error
  }
}

/** One message has gone through the delay that all failures have, so that a broker that needs a queue for it has one. */
async function makeMailboxes(url: string): Promise<void> {
  for (const name of Object.values(names)) {
    const mailbox = await openMailbox(url, { name })
    await mailbox.send('first', { delaySeconds: backoffMs / 1000 })
    const [first] = await mailbox.receive({ waitSeconds: 20 })
    await first?.acknowledge()
    await mailbox.close()
  }
}

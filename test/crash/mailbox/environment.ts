import { join } from 'node:path'
import { openMailbox } from '../../../src/connect/mailbox.ts'
import { createProxy, type Proxy } from '../../faults/proxy.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { privatePostgres, privateRabbitmq, privateRedis } from '../../servers/private.ts'
import { backoffMs, names } from './child.ts'

export const brokers = ['sqlite', 'postgres', 'redis', 'rabbitmq'] as const
export type Broker = (typeof brokers)[number]

/** The broker of a run, and the connections of its processes to it. */
export interface Environment {
  broker: Broker
  /** The URL of the broker without a proxy, for the verifier. */
  url: string
  /** One proxy per process; none where the broker is a file. */
  proxies: Proxy[]
  urlFor: (process: number) => string
  /** The private server, which the run may stop. */
  server?: PrivateServer
  end: () => Promise<void>
}

const privateServers = { postgres: privatePostgres, redis: privateRedis, rabbitmq: privateRabbitmq }

/** `mailbox` is `sqlite:FILE`, or the kind of a private server. */
export async function createEnvironment(
  mailbox: string | undefined,
  folder: string,
  processes: number,
): Promise<Environment> {
  if (mailbox === 'postgres' || mailbox === 'redis' || mailbox === 'rabbitmq')
    return connectToServer(mailbox, await privateServers[mailbox](), processes)
  const url = mailbox ?? `sqlite:${join(folder, 'mail.db')}`
  await createMailboxes(url)
  return { broker: 'sqlite', url, proxies: [], urlFor: () => url, end: () => Promise.resolve() }
}

async function connectToServer(
  broker: Exclude<Broker, 'sqlite'>,
  server: PrivateServer,
  processes: number,
): Promise<Environment> {
  const { url } = server
  try {
    await createMailboxes(url)
    // RabbitMQ persists new queues late, and would lose them in an early crash.
    if (broker === 'rabbitmq') {
      await server.stop()
      await server.start()
    }
    const proxies = await Promise.all(
      Array.from({ length: processes }, (_, process) => createProxy(url, process)),
    )
    return {
      broker,
      url,
      proxies,
      server,
      urlFor: (process) => proxies[process]!.through(url),
      end: async () => {
        for (const proxy of proxies) proxy.close()
        await server.remove()
      },
    }
  } catch (error) {
    await server.remove()
    throw error
  }
}

/** Sends one delayed message each, so that brokers create their delay queue. */
async function createMailboxes(url: string): Promise<void> {
  for (const name of Object.values(names)) {
    const mailbox = await openMailbox(url, { name })
    await mailbox.send('first', { delaySeconds: backoffMs / 1000 })
    const [first] = await mailbox.receive({ waitSeconds: 20 })
    await first?.acknowledge()
    await mailbox.close()
  }
}

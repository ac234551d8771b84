import {
  Admin,
  Consumer,
  kGetApi,
  kGetConnection,
  type Producer,
  type API,
  type Base,
  type BaseOptions,
  type Connection,
  type GroupOptions,
} from '@platformatic/kafka'
import type { Clock } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import { connectionTo, placeOf } from './address.ts'
import { QuickProducer } from './producer.ts'
import { toRedriveError } from './errors.ts'

export interface ClusterOptions {
  url: string
  clock: Clock
  /** How long a call may take. */
  timeoutMs: number
  /** What the brokers see in their logs. */
  clientId: string
  /** More for the connection: certificates, another authentication. */
  connection?: Partial<BaseOptions>
}

type GroupSettings = GroupOptions & { groupId: string; requestTimeout?: number; retries?: number }

/** Makes clients for one cluster, and bounds what they take. */
export class Cluster {
  readonly clock: Clock
  readonly place: string
  readonly timeoutMs: number
  readonly #base: BaseOptions

  constructor({ url, clock, timeoutMs, clientId, connection }: ClusterOptions) {
    this.clock = clock
    this.place = placeOf(url)
    this.timeoutMs = timeoutMs
    this.#base = {
      clientId,
      connectTimeout: Math.min(timeoutMs, 3000),
      timeout: timeoutMs,
      retries: 3,
      retryDelay: 200,
      ...connectionTo(url),
      ...connection,
    }
  }

  producer(more: Partial<BaseOptions> & { transactionalId?: string } = {}): Producer {
    const { timeoutMs } = this
    return new QuickProducer({
      ...this.#base,
      requestTimeout: timeoutMs,
      idempotent: true,
      acks: -1,
      ...more,
    })
  }

  admin(): Admin {
    return new Admin({ ...this.#base, requestTimeout: this.timeoutMs })
  }

  consumer(settings: GroupSettings): Consumer {
    const consumer = new Consumer({ ...this.#base, ...settings })
    // What goes wrong on its own is told to whoever waits; without anybody to hear it, the process would end.
    consumer.on('error', () => {})
    return consumer
  }

  /** What a client does, in time and in our words. */
  async call<T>(act: () => Promise<T>): Promise<T> {
    const late = `there was no answer within ${this.timeoutMs} ms`
    let cancel = (): void => {}
    try {
      return await Promise.race([
        act(),
        new Promise<never>((_, reject) => {
          cancel = this.clock.timer(this.timeoutMs, () =>
            reject(this.toRedriveError(new Error(late))),
          )
        }),
      ])
    } catch (error) {
      throw this.toRedriveError(error)
    } finally {
      cancel()
    }
  }

  toRedriveError(error: unknown): RedriveError {
    return toRedriveError(error, this.place)
  }
}

/** Asks a broker for what the client has no verb for. What is asked may depend on the version that both know. */
export async function askBroker<A extends unknown[], R>(
  client: Base,
  node: number,
  name: string,
  asked: A | ((version: number) => A),
): Promise<R> {
  // The brokers are known by then: whoever knows the node has asked for them.
  const broker =
    client.currentMetadata?.brokers.get(node) ??
    (await client.metadata({ topics: [], forceUpdate: true })).brokers.get(node)
  if (!broker) throw new Error(`broker ${node} is not known`)
  const api = await promised<API<A, R>>((callback) => client[kGetApi]<A, R>(name, callback))
  const connection = await promised<Connection>((callback) =>
    client[kGetConnection](broker, callback),
  )
  return api.async(connection, ...(typeof asked === 'function' ? asked(api.version) : asked))
}

function promised<T>(
  ask: (callback: (error: Error | null, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) =>
    ask((error, value) =>
      error || value === undefined ? reject(error ?? new Error('no answer')) : resolve(value),
    ),
  )
}

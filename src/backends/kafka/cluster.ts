import {
  Admin,
  Consumer,
  Producer,
  type API,
  type Base,
  type BaseOptions,
  type GroupOptions,
} from '@platformatic/kafka'
import type { Clock } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import { formatHosts, parseConnection } from './address.ts'
import { toRedriveError } from './errors.ts'

export interface ClusterOptions {
  url: string
  clock: Clock
  /** Time limit of one call. */
  timeoutMs: number
  /** Client id in the logs of the brokers. */
  clientId: string
  /** More options for the client: certificates, another authentication. */
  connection?: Partial<BaseOptions>
}

type ConsumerSettings = GroupOptions & {
  groupId: string
  requestTimeout?: number
  retries?: number
}

/** Creates clients for one cluster and applies the time limit to their calls. */
export class Cluster {
  readonly clock: Clock
  /** The hosts of the URL, without credentials. */
  readonly hosts: string
  readonly timeoutMs: number
  readonly #base: BaseOptions

  constructor({ url, clock, timeoutMs, clientId, connection }: ClusterOptions) {
    this.clock = clock
    this.hosts = formatHosts(url)
    this.timeoutMs = timeoutMs
    this.#base = {
      clientId,
      connectTimeout: Math.min(timeoutMs, 3000),
      timeout: timeoutMs,
      retries: 3,
      retryDelay: 200,
      ...parseConnection(url),
      ...connection,
    }
  }

  producer(more: Partial<BaseOptions> & { transactionalId?: string } = {}): Producer {
    const requestTimeout = this.timeoutMs
    return new Producer({ ...this.#base, requestTimeout, idempotent: true, acks: -1, ...more })
  }

  admin(): Admin {
    return new Admin({ ...this.#base, requestTimeout: this.timeoutMs })
  }

  consumer(settings: ConsumerSettings): Consumer {
    const consumer = new Consumer({ ...this.#base, ...settings })
    // Calls report their errors themselves. An 'error' event without a listener ends the process.
    consumer.on('error', () => {})
    return consumer
  }

  /** Runs a call of a client with a time limit. Every error becomes a `RedriveError`. */
  async call<T>(act: () => Promise<T>, limitMs = this.timeoutMs): Promise<T> {
    const timeout = Promise.withResolvers<never>()
    const cancel = this.clock.timer(limitMs, () =>
      timeout.reject(new Error(`no answer within ${limitMs} ms`)),
    )
    try {
      return await Promise.race([act(), timeout.promise])
    } catch (error) {
      throw this.toRedriveError(error)
    } finally {
      cancel()
    }
  }

  toRedriveError(error: unknown): RedriveError {
    return toRedriveError(error, this.hosts)
  }
}

/** Sends a request that the client has no method for, by its API for one version of the request. */
export async function requestBroker<A extends unknown[], R>(
  client: Base,
  node: number,
  api: API<A, R>,
  ...request: A
): Promise<R> {
  const connection = (await client.connectToBrokers([node])).get(node)
  if (connection) return api.async(connection, ...request)
  client.clearMetadata()
  throw new Error(`broker ${node} is not part of the cluster`)
}

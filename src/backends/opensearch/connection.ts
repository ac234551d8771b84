import type { Client, ClientOptions } from '@opensearch-project/opensearch'
import type { Clock } from '../../clock/clock.ts'
import { retry } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import type { Address } from './address.ts'
import { isConnection, isLater, toRedriveError } from './errors.ts'

export interface Ask {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD'
  path: string
  query?: Record<string, string | number | boolean>
  body?: object
  /** Lines of JSON, for bulk requests. */
  lines?: string
  /** Statuses that are answers and not errors. */
  expect?: readonly number[]
}

export interface Answer<T> {
  status: number
  body: T
  /** It was sent more than once, so an earlier sending may have been carried out. */
  repeated: boolean
}

/** Maximum attempts of a request while the server is busy, and when it cannot be reached. */
export const maxBusyAttempts = 6
const maxUnreachableAttempts = 2

export const busyDelay = { firstMs: 100, maxMs: 2000 }

/** Requests to one server, repeated with pauses while it is busy. Every failure is an error of ours. */
export class Wire {
  readonly #address: Address
  readonly clock: Clock
  readonly #options: ClientOptions
  /** The alias that each index is written by, as it was found when the index was opened. */
  readonly doors = new Map<string, string>()
  #client: Promise<Client> | undefined
  #closing: Promise<void> | undefined

  constructor(address: Address, clock: Clock, options: ClientOptions = {}) {
    this.#address = address
    this.clock = clock
    this.#options = options
  }

  async ask<T>(ask: Ask): Promise<Answer<T>> {
    if (this.#closing)
      throw new RedriveError(
        'CLOSED',
        `the connection to opensearch ${this.#address.node} is closed`,
      )
    const client = await (this.#client ??= load(this.#address, this.#options))
    const shouldRetry = (error: unknown, attempt: number): boolean =>
      attempt <
      (isLater(error) ? maxBusyAttempts : isConnection(error) ? maxUnreachableAttempts : 1)
    try {
      return await retry({ clock: this.clock, ...busyDelay, shouldRetry }, async (attempt) => {
        const { statusCode, body } = await send(client, ask)
        return { status: statusCode ?? 0, body: body as T, repeated: attempt > 1 }
      })
    } catch (error) {
      throw toRedriveError(error, this.#address)
    }
  }

  /**
   * Lines of a bulk request to an index. They go by an alias and nothing else: to write to an index that was removed, the
   * server would make one by itself, with fields that it guesses.
   */
  write<T>(index: string, lines: string): Promise<Answer<T>> {
    const door = this.doors.get(index) ?? index
    return this.ask({
      method: 'POST',
      path: `/${door}/_bulk`,
      query: { require_alias: true },
      lines,
    })
  }

  /** Ends all connections. The next request makes others. */
  async disconnect(): Promise<void> {
    const loading = this.#client
    this.#client = undefined
    const client = await loading?.catch(() => undefined)
    await client?.close()
  }

  /** Safe twice. */
  close(): Promise<void> {
    return (this.#closing ??= this.disconnect())
  }
}

async function load({ node, auth }: Address, options: ClientOptions): Promise<Client> {
  const found = await import('@opensearch-project/opensearch').catch((error: unknown) => {
    const message =
      'an OpenSearch store needs its client: npm install @opensearch-project/opensearch'
    throw new RedriveError('INVALID_CONFIG', message, { cause: error })
  })
  return new found.Client({
    node,
    ...(auth ? { auth } : {}),
    requestTimeout: 5000,
    // Repeating is our business, and so is what may be in a letter.
    maxRetries: 0,
    disablePrototypePoisoningProtection: true,
    ...options,
  })
}

async function send(
  client: Client,
  ask: Ask,
): Promise<{ statusCode: number | null; body: unknown }> {
  const { method, path, query, body, lines, expect = [] } = ask
  const params = {
    method,
    path,
    ...(query ? { querystring: query } : {}),
    ...(body ? { body } : {}),
    ...(lines === undefined ? {} : { bulkBody: lines }),
  }
  return client.transport.request(params, { ignore: [...expect] })
}

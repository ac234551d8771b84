import type { Client, ClientOptions } from '@opensearch-project/opensearch'
import type { Clock } from '../../clock/clock.ts'
import { retry } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import type { Address } from './address.ts'
import { isConnectionError, isTemporary, toRedriveError } from './errors.ts'

export interface OpensearchRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD'
  path: string
  query?: Record<string, string | number | boolean>
  body?: object
  /** Lines of JSON, for bulk requests. */
  lines?: string
  /** Statuses that are not errors. */
  expect?: readonly number[]
}

export interface OpensearchResponse<T> {
  status: number
  body: T
  /** True if the request was sent more than once: an earlier attempt may have been executed. */
  repeated: boolean
}

/** Maximum attempts of a request while the server is busy, and while it is unreachable. */
export const maxBusyAttempts = 6
const maxUnreachableAttempts = 2

export const busyDelay = { firstMs: 100, maxMs: 2000 }

/** Sends requests to one server. Retries while the server is busy, and translates errors. */
export class OpensearchConnection {
  readonly #address: Address
  readonly clock: Clock
  readonly #options: ClientOptions
  /** The alias for writes to each index, set when the index is opened. */
  readonly writeAliases = new Map<string, string>()
  #client: Promise<Client> | undefined
  #closing: Promise<void> | undefined

  constructor(address: Address, clock: Clock, options: ClientOptions = {}) {
    this.#address = address
    this.clock = clock
    this.#options = options
  }

  async request<T>(request: OpensearchRequest): Promise<OpensearchResponse<T>> {
    if (this.#closing)
      throw new RedriveError(
        'CLOSED',
        `the connection to opensearch ${this.#address.node} is closed: open a new store`,
      )
    const client = await (this.#client ??= createClient(this.#address, this.#options))
    const shouldRetry = (error: unknown, attempt: number): boolean =>
      attempt <
      (isTemporary(error) ? maxBusyAttempts : isConnectionError(error) ? maxUnreachableAttempts : 1)
    try {
      return await retry({ clock: this.clock, ...busyDelay, shouldRetry }, async (attempt) => {
        const { statusCode, body } = await send(client, request)
        return { status: statusCode ?? 0, body: body as T, repeated: attempt > 1 }
      })
    } catch (error) {
      throw toRedriveError(error, this.#address)
    }
  }

  /**
   * Sends a bulk request to an index through its write alias. Without an alias, the server would
   * recreate a deleted index by itself, with guessed field types.
   */
  write<T>(index: string, lines: string): Promise<OpensearchResponse<T>> {
    const writeAlias = this.writeAliases.get(index) ?? index
    return this.request({
      method: 'POST',
      path: `/${writeAlias}/_bulk`,
      query: { require_alias: true },
      lines,
    })
  }

  /** Closes all connections. The next request opens new ones. */
  async disconnect(): Promise<void> {
    const creating = this.#client
    this.#client = undefined
    const client = await creating?.catch(() => undefined)
    await client?.close()
  }

  /** May be called twice. */
  close(): Promise<void> {
    return (this.#closing ??= this.disconnect())
  }
}

async function createClient({ node, auth }: Address, options: ClientOptions): Promise<Client> {
  const opensearch = await import('@opensearch-project/opensearch').catch((error: unknown) => {
    const message =
      'an OpenSearch store needs its client: npm install @opensearch-project/opensearch'
    throw new RedriveError('INVALID_CONFIG', message, { cause: error })
  })
  return new opensearch.Client({
    node,
    ...(auth ? { auth } : {}),
    requestTimeout: 5000,
    // `request` does the retries.
    maxRetries: 0,
    // Letters may contain keys such as __proto__.
    disablePrototypePoisoningProtection: true,
    ...options,
  })
}

async function send(
  client: Client,
  request: OpensearchRequest,
): Promise<{ statusCode: number | null; body: unknown }> {
  const { method, path, query, body, lines, expect = [] } = request
  const params = {
    method,
    path,
    ...(query ? { querystring: query } : {}),
    ...(body ? { body } : {}),
    ...(lines === undefined ? {} : { bulkBody: lines }),
  }
  return client.transport.request(params, { ignore: [...expect] })
}

import { afterEach, beforeEach, expect } from 'vitest'
import { z } from 'zod'
import type { FastifyInstance } from 'fastify'
import { createClient, type Client } from '../../src/api/client.ts'
import { endpointNames, endpointOf } from '../../src/api/endpoints.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { PrometheusMetrics } from '../../src/observers/metrics/metrics.ts'
import { Idempotency } from '../../src/server/idempotency.ts'
import { OneTimeCodes } from '../../src/server/sign-in/one-time-codes.ts'
import type { ServerOptions } from '../../src/server/parts.ts'
import { createServer } from '../../src/server/server.ts'
import { Tokens, type NewToken } from '../../src/server/tokens.ts'
import type { ServerSettings } from '../../src/config/server.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import type { Store } from '../../src/store.ts'
import { fakeClock, type FakeClock } from '../../src/testing/index.ts'

/**
 * A server on a memory store that listens on a free port, and what tests need to call it. It serves
 * no pages unless asked: each file of them is a route, so that a server starts slowly with them.
 */
export interface TestServer {
  url: string
  app: FastifyInstance
  dlq: DeadLetterQueue
  store: Store
  clock: FakeClock
  tokens: Tokens
  metrics: PrometheusMetrics
  codes: OneTimeCodes
  /** Unexpected errors. A test that ends with one has found a bug. */
  errors: unknown[]
  /** A client with a new token. Default: an admin. */
  client(token?: Partial<NewToken>): Promise<Client>
  token(token?: Partial<NewToken>): Promise<string>
  close(): Promise<void>
}

export async function aServer(
  options: QueueOptions = {},
  settings: ServerSettings = {},
  more: Partial<ServerOptions> = {},
): Promise<TestServer> {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const dlq = await DeadLetterQueue.open(store, { clock, ...options })
  const tokens = new Tokens({ store, clock })
  const errors: unknown[] = []
  const idempotency = new Idempotency(store, clock)
  const onError = (error: unknown): unknown => errors.push(error)
  const codes = new OneTimeCodes(clock)
  const version = '0'
  const metrics = new PrometheusMetrics({ process: false, clock })
  const shared = { dlq, tokens, codes, idempotency, clock, version, settings, metrics, onError }
  const app = createServer({ ...shared, pages: false, ...more })
  checkOutputs(app)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const token = async (given: Partial<NewToken> = {}): Promise<string> => {
    const rights = given.permissions ? {} : { role: 'admin' as const }
    const created = await tokens.create({ name: 'mia', createdBy: 'test', ...rights, ...given })
    return created.token
  }
  return {
    url,
    app,
    dlq,
    store,
    clock,
    tokens,
    metrics,
    codes,
    errors,
    token,
    client: async (given) => createClient({ url, token: await token(given) }),
    close: async () => {
      await app.close()
      await dlq.close()
    },
  }
}

export async function readAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Every JSON response must match the strict schema of its endpoint: otherwise it is an error. */
function checkOutputs(app: FastifyInstance): void {
  const endpointOfRoute = new Map(
    endpointNames
      .map(endpointOf)
      .filter(({ stream }) => !stream)
      .map((endpoint) => {
        return [`${endpoint.method} ${endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1')}`, endpoint]
      }),
  )
  app.addHook('onSend', async (request, reply, payload) => {
    const endpoint = endpointOfRoute.get(`${request.method} ${request.routeOptions.url}`)
    const type = String(reply.getHeader('content-type'))
    if (endpoint && type.startsWith('application/json'))
      z.parse(endpoint.output, JSON.parse(payload as string))
    return payload
  })
}

/**
 * Starts a new server before each test of a file, and closes it after the test. A test in which the
 * server had an unexpected error fails.
 */
export function withServerInEachTest(
  onStart: (server: TestServer) => unknown,
  options: QueueOptions = {},
  settings: ServerSettings = {},
): void {
  let server: TestServer
  beforeEach(async () => {
    server = await aServer(options, settings)
    await onStart(server)
  })
  afterEach(async () => {
    await server.close()
    expect(server.errors).toEqual([])
  })
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type Client } from '../../src/api/client.ts'
import { permissionsOfRole } from '../../src/api/permissions.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { PrometheusMetrics } from '../../src/observers/metrics/metrics.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { closeServer } from '../../src/server/close-server.ts'
import { Idempotency } from '../../src/server/idempotency.ts'
import type { ServerOptions } from '../../src/server/parts.ts'
import { createServer } from '../../src/server/server.ts'
import { OneTimeCodes } from '../../src/server/sign-in/one-time-codes.ts'
import { Tokens, type NewToken } from '../../src/server/tokens.ts'
import type { Store } from '../../src/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'

/** A server with its dashboard, in real time, on a store that is removed afterwards. */
export interface TestDashboard {
  url: string
  dlq: DeadLetterQueue
  client: Client
  /** A new token. Default: an admin named mia. */
  token(token?: Partial<NewToken>): Promise<string>
  /** A one-time code that signs in an admin named zoe. */
  code(): string
  /** Closes the server, and starts it again at the same address. */
  stopServer(): Promise<void>
  startServer(): Promise<void>
  close(): Promise<void>
}

export type OpenStore = () => Promise<{ store: Store; remove: () => Promise<void> }>

/** An SQLite store in a directory of its own. */
export const openSqlite: OpenStore = async () => {
  const path = await mkdtemp(join(tmpdir(), 'redrive-dashboard-'))
  const store = sqliteStore({ path: join(path, 'letters.db'), clock: systemClock })
  return { store, remove: () => rm(path, { recursive: true, force: true }) }
}

export async function openDashboard(
  open: OpenStore = openSqlite,
  options: QueueOptions = {},
  more: Partial<ServerOptions> = {},
): Promise<TestDashboard> {
  const { store, remove } = await open()
  const dlq = await DeadLetterQueue.open(store, { clock: systemClock, pollMs: 50, ...options })
  const tokens = new Tokens({ store, clock: systemClock })
  const codes = new OneTimeCodes(systemClock)
  const create = () =>
    createServer({
      dlq,
      tokens,
      codes,
      idempotency: new Idempotency(store, systemClock),
      clock: systemClock,
      version: '0.0.0',
      settings: {},
      metrics: new PrometheusMetrics({ process: false, clock: systemClock }),
      onError: (error) => console.error(error),
      ...more,
    })
  let app = create()
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const port = Number(new URL(url).port)
  dlq.start()
  const token = async (given: Partial<NewToken> = {}): Promise<string> => {
    const rights = given.permissions ? {} : { role: 'admin' as const }
    return (await tokens.create({ name: 'mia', createdBy: 'test', ...rights, ...given })).token
  }
  return {
    url,
    dlq,
    token,
    code: () =>
      codes.create({
        name: 'zoe',
        role: 'admin',
        permissions: new Set(permissionsOfRole.admin),
        scope: {},
      }),
    client: createClient({ url, token: await token({ name: 'test' }) }),
    stopServer: () => closeServer(app, systemClock),
    startServer: async () => {
      app = create()
      await app.listen({ port, host: '127.0.0.1' })
    },
    close: async () => {
      await closeServer(app, systemClock)
      await dlq.close()
      await remove()
    },
  }
}

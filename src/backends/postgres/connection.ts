import { Pool, type Client, type PoolClient } from 'pg'
import { sleep, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Address, PoolInternals } from './address.ts'
import { isCollision, isLost, toRedriveError } from './errors.ts'
import { answerTimeoutMs, queryRows, sendQuery, type Cells } from './query.ts'
import {
  begin,
  beginPlainly,
  beginSnapshot,
  durableCommit,
  setForSession,
  setLocally,
} from './settings.ts'
import type { Tenant } from './tenant.ts'
import { Transaction } from './transaction.ts'

const connectTimeoutMs = 4000
/** How long a statement waits for a connection of the pool, including the time to connect. */
const checkOutMs = 5000
/** How often a transaction that collides with others is tried before the caller gets the error. */
export const maxTries = 8
/**
 * A lost call is repeated only if it failed within this time, so that the caller does not wait too
 * long.
 */
const quickMs = 1000

/**
 * Which connections a statement uses. `hot` serves workers: capture, claim, renew and settle.
 * `cold` serves reads and long work, so that they never delay a worker.
 */
export type Side = 'hot' | 'cold'

export interface ConnectionOptions {
  address: Address
  clock: Clock
  tenant: Tenant
  /** Splits the connections into a pool for each side. Default: false, one pool serves both. */
  separateSides?: boolean
  /** Planner settings for `execute` and the hot side, as in `enable_seqscan = off`. */
  plannerSettings?: readonly string[]
}

interface ReadOptions {
  /** Default: `cold`. */
  side?: Side
  timeoutMs?: number
}

interface TransactionOptions {
  /**
   * Repeating the work is harmless, so it is repeated when nobody knows whether it was committed.
   */
  repeatable?: boolean
  /** Reads only, and every statement sees the same snapshot. */
  snapshot?: boolean
}

/** The connection was lost after the commit was sent: nobody knows whether it happened. */
class LostCommit extends Error {
  constructor(cause: unknown) {
    super('the connection was lost before the server confirmed the commit', { cause })
  }
}

/** Whether nobody knows if the rejected call was committed. */
export function isUnknownOutcome(error: unknown): boolean {
  return error instanceof RedriveError && error.cause instanceof LostCommit
}

/** Without a listener, the event of a connection that dies would end the process. */
const ignoreError = (): void => {}

/**
 * The connections of a store or mailbox to its schema: reads, statements and transactions. In SQL,
 * `@` stands for the schema.
 *
 * What collides with another transaction is tried again a few times. What was lost before its
 * commit was sent has not happened and is repeated, once for each connection of the pool, since all
 * of them may be lost at once. What was lost after that is repeated if it is repeatable. (Asking
 * the server by transaction id is no way out: it reuses ids after a crash.)
 */
export class PostgresConnection {
  readonly place: string
  readonly schema: string
  readonly #options: ConnectionOptions
  readonly #plannerSettings: readonly string[]
  /**
   * Connections that no pooler shares with others, so that session settings and prepared statements
   * hold.
   */
  readonly #sessions = new WeakSet<PoolClient>()
  /** Prepared statements by their SQL as the caller wrote it. */
  readonly #prepared = new Map<string, { name: string; text: string }>()
  #pools: Record<Side, Pool>
  #commitsDurably = false

  constructor(options: ConnectionOptions) {
    const { address, plannerSettings = [] } = options
    this.place = address.place
    this.schema = address.schema
    this.#options = options
    this.#plannerSettings = plannerSettings
    this.#pools = this.#createPools()
  }

  /** Whether the pool belongs to the application, which ends it. */
  get #isInjected(): boolean {
    return 'pool' in this.#options.address.server
  }

  /** An injected pool serves both sides. */
  #createPools(): Record<Side, Pool> {
    const { address, separateSides = false } = this.#options
    const { server, poolSize } = address
    if ('pool' in server) return { hot: server.pool, cold: server.pool }
    const hotSize = separateSides ? Math.ceil(poolSize / 2) : poolSize
    const hot = this.#createPool(server.url, hotSize)
    if (this.#plannerSettings.length > 0)
      hot.on('connect', (client) => void this.#prepareSession(client))
    return { hot, cold: separateSides ? this.#createPool(server.url, poolSize - hotSize) : hot }
  }

  /**
   * Connections are pipelined: they send a statement before the answer to the one before has come.
   */
  #createPool(url: string, max: number): Pool {
    const pool = new Pool({
      connectionString: url,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: answerTimeoutMs,
      keepAlive: true,
      application_name: 'redrive',
      max,
      pipeline: true,
      allowExitOnIdle: true,
    })
    pool.on('error', ignoreError)
    // At once: a server that shuts down may send its error together with the end of the handshake.
    pool.on('connect', (client) => client.on('error', ignoreError))
    return pool
  }

  /**
   * Applies the settings to the session. Behind a pooler the session is not ours: its backend has
   * another process id than the one that the connection was given. Statements that run before this
   * is done set them for each transaction.
   */
  async #prepareSession(client: PoolClient): Promise<void> {
    try {
      const [row] = await queryRows(client, 'SELECT pg_backend_pid()')
      if (row![0] !== processIdOf(client)) return
      await sendQuery(client, setForSession(this.#plannerSettings))
      this.#sessions.add(client)
    } catch {
      // The next statement on the connection gets the error.
    }
  }

  /** A separate connection, not connected yet. */
  createClient(): Client {
    // The pool creates its clients in the same way. A copy of the options would lack the password.
    const { Client, options } = this.#pools.cold as unknown as PoolInternals
    return new Client(options)
  }

  /** From now on commits wait for the disk, although the server's default is not to. */
  commitDurably(): void {
    this.#commitsDurably = true
  }

  /** Replaces `@` by the schema. */
  qualify(sql: string): string {
    return sql.replaceAll('@', `"${this.schema}".`)
  }

  /** The rows of a statement that writes nothing. */
  read(sql: string, values: unknown[] = [], options: ReadOptions = {}): Promise<Cells[]> {
    const text = this.qualify(sql)
    const query = (client: PoolClient): Promise<Cells[]> =>
      queryRows(client, text, values, options.timeoutMs)
    return this.#retry(options.side ?? 'cold', true, query)
  }

  /** Runs one statement as a transaction, with the planner settings, and returns its rows. */
  execute(
    sql: string,
    values: unknown[] = [],
    { repeatable = false }: { repeatable?: boolean } = {},
  ): Promise<Cells[]> {
    return this.#retry('hot', repeatable, (client) => {
      if (this.#sessions.has(client) && !this.#commitsDurably)
        return this.#executePrepared(client, sql, values)
      const beginning = this.#begin(client) + setLocally(this.#plannerSettings)
      // Boxed, so that COMMIT is sent without waiting for the rows.
      const work = async (tx: Transaction): Promise<{ rows: Promise<Cells[]> }> => ({
        rows: tx.rows(sql, values),
      })
      return this.#transact(client, beginning, work).then(({ rows }) => rows)
    })
  }

  /** A named statement is parsed and planned once for each connection. */
  async #executePrepared(client: PoolClient, sql: string, values: unknown[]): Promise<Cells[]> {
    let statement = this.#prepared.get(sql)
    if (!statement) {
      statement = { name: `redrive_${this.#prepared.size}`, text: this.qualify(sql) }
      this.#prepared.set(sql, statement)
    }
    try {
      return await queryRows(client, statement, values)
    } catch (error) {
      throw isLost(error) ? new LostCommit(error) : error
    }
  }

  /** Runs `work` in a transaction, which starts over when another writer was first. */
  transaction<T>(
    side: Side,
    work: (tx: Transaction) => Promise<T>,
    { snapshot = false, repeatable = snapshot }: TransactionOptions = {},
  ): Promise<T> {
    const attempt = (client: PoolClient): Promise<T> =>
      this.#transact(client, snapshot ? beginSnapshot : this.#begin(client), work)
    return this.#retry(side, repeatable, attempt)
  }

  /** A session of ours has the settings already. */
  #begin(client: PoolClient): string {
    const beginning = this.#sessions.has(client) ? beginPlainly : begin
    return this.#commitsDurably ? beginning + durableCommit : beginning
  }

  async #transact<T>(
    client: PoolClient,
    beginning: string,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    const tx = new Transaction(client, this, beginning)
    try {
      const value = await work(tx)
      await tx.commit()
      return value
    } catch (thrown) {
      // The first failure is the cause: statements after it only report that the transaction is
      // aborted.
      const error = (await tx.firstError()) ?? thrown
      throw tx.isCommitSent && isLost(error) ? new LostCommit(error) : error
    }
  }

  async #retry<T>(
    side: Side,
    repeatable: boolean,
    attempt: (client: PoolClient) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#options
    const startMs = clock.mono()
    let lost = 0
    for (let tries = 1; ; tries++) {
      const pool = this.#pools[side]
      try {
        return await this.#withClient(pool, attempt)
      } catch (error) {
        if (isCollision(error) && tries < maxTries) {
          await sleep(clock, clock.random() * 5 * 2 ** tries)
          continue
        }
        const mayRepeat = isLost(error) && (repeatable || !(error instanceof LostCommit))
        const isQuick = clock.mono() - startMs < quickMs
        if (!mayRepeat || !isQuick || ++lost > pool.options.max) throw this.#translate(error)
      }
    }
  }

  async #withClient<T>(pool: Pool, attempt: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#checkOut(pool)
    client.on('error', ignoreError)
    let isBroken = false
    try {
      return await attempt(client)
    } catch (error) {
      isBroken = isLost(error) || !(await rollBack(client))
      throw error
    } finally {
      client.release(isBroken)
      // A broken connection may report more errors while it is closed.
      if (!isBroken) client.off('error', ignoreError)
    }
  }

  /** Limits the wait for a connection of an injected pool, which may have no limit of its own. */
  #checkOut(pool: Pool): Promise<PoolClient> {
    const { clock, tenant } = this.#options
    const connecting = pool.connect()
    if (!this.#isInjected) return connecting
    return new Promise((resolve, reject) => {
      let isLate = false
      const cancel = clock.timer(checkOutMs, () => {
        isLate = true
        const fix = 'raise max of the pool, or release connections sooner'
        const message = `${this.place}: no connection was free within ${checkOutMs} ms: ${fix}`
        reject(new RedriveError(tenant.unavailable, message))
      })
      connecting
        .then((client) => (isLate ? client.release() : resolve(client)), reject)
        .finally(cancel)
    })
  }

  #translate(error: unknown): RedriveError {
    const { tenant } = this.#options
    if (!(error instanceof LostCommit)) return toRedriveError(error, this.place, tenant)
    return new RedriveError(
      tenant.unavailable,
      `${this.place}: ${error.message}; the call may or may not have taken effect, and repeating it is harmless`,
      { cause: error },
    )
  }

  /** Ends all connections but those of an injected pool. The next statement opens new ones. */
  async disconnect(): Promise<void> {
    const pools = this.#pools
    this.#pools = this.#createPools()
    await this.#endPools(pools)
  }

  close(): Promise<void> {
    return this.#endPools(this.#pools)
  }

  async #endPools({ hot, cold }: Record<Side, Pool>): Promise<void> {
    if (this.#isInjected) return
    await Promise.all([...new Set([hot, cold])].map((pool) => pool.end()))
  }
}

async function rollBack(client: PoolClient): Promise<boolean> {
  try {
    await sendQuery(client, 'ROLLBACK')
    return true
  } catch {
    return false
  }
}

/** The process id of the backend as the server reported it. `pg` has it, its types do not. */
function processIdOf(client: PoolClient): unknown {
  return (client as unknown as { processID: unknown }).processID
}

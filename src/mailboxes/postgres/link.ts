import { Client, type ClientConfig, type Pool, type PoolClient } from 'pg'
import { sleep, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Address } from '../../backends/postgres/address.ts'
import {
  begin,
  configOf,
  durably,
  locally,
  poolOf,
  settings,
  types,
} from '../../backends/postgres/connection.ts'
import type { Read } from '../../backends/postgres/inspect.ts'
import type { Tenant } from '../../backends/postgres/tenant.ts'
import { isBug, isCollision, isLost, toRedriveError } from '../../backends/postgres/errors.ts'

const tenant: Tenant = { noun: 'mailbox', unavailable: 'MAILBOX_UNAVAILABLE' }

export type Cells = unknown[]

/** A statement and its values. `@` stands for the schema. */
export type Statement = readonly [sql: string, values?: readonly unknown[]]

interface DoOptions {
  /** Harmless to do twice, so that it is done again when nobody knows whether it happened. */
  repeatable?: boolean
}

/** The way to the server. */
export interface Link {
  readonly place: string
  readonly schema: string
  /** The rows of each statement. All are one transaction, sent in one go: none can use what another gave. */
  do(statements: readonly Statement[], options?: DoOptions): Promise<Cells[][]>
  /** A connection of its own, not yet connected. */
  client(): Client
  /** From now on commits wait for the disk, although the server's default is not to. */
  commitDurably(): void
  close(): Promise<void>
}

/** One statement at a time, each a transaction. */
export function readerOf(link: Link): Read {
  return async (sql, values = []) => {
    const [rows] = await link.do([[sql, values]])
    return rows!
  }
}

/** It was sent, and no answer came. */
class LostAnswer extends Error {
  constructor(cause: unknown) {
    super('the connection was lost before the answer came', { cause })
  }
}

/** Whether nobody knows if what was asked has happened. */
export function isUnknown(error: unknown): boolean {
  return error instanceof RedriveError && error.cause instanceof LostAnswer
}

const maxTries = 6
/** After a failure that took longer than this a repetition would keep the caller waiting for too long. */
const quickMs = 1000

/**
 * A table of messages is empty one moment and full the next, and what the server believes about it is often old. It is kept from what would
 * be quick on an empty table alone: every statement finds its rows by an index.
 */
const byIndex = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin'].map(
  (way) => `enable_${way} = off`,
)

const beginning = `${begin} ${locally(byIndex)}`

/** The same for all that is done on a connection, and that the server plans each statement once. */
const forGood = [
  `default_transaction_isolation = 'read committed'`,
  'plan_cache_mode = force_generic_plan',
  ...settings,
  ...byIndex,
]
  .map((one) => `SET ${one};`)
  .join(' ')

export function openLink(address: Address, clock: Clock): Link {
  return new PostgresLink(address, clock)
}

class PostgresLink implements Link {
  readonly place: string
  readonly schema: string
  readonly #config: ClientConfig
  readonly #clock: Clock
  readonly #pool: Pool
  /** Connections that are ours alone, with our settings. */
  readonly #own = new WeakSet<PoolClient>()
  /** What the server knows there by a name, by the statement as it is written here. */
  readonly #prepared = new Map<string, { name: string; text: string }>()
  #begin = beginning
  #lazy = false

  constructor(address: Address, clock: Clock) {
    this.place = address.place
    this.schema = address.schema
    this.#clock = clock
    this.#config = configOf(address.url)
    this.#pool = poolOf(this.#config, address.poolSize)
    this.#pool.on('connect', (client) => void this.#moveInto(client))
  }

  client(): Client {
    return new Client(this.#config)
  }

  commitDurably(): void {
    this.#begin = beginning + durably
    this.#lazy = true
  }

  /**
   * What collides with another transaction is begun afresh, a few times. What may be done again is, for each connection of the pool: all of
   * them may have been lost at once.
   */
  async do(statements: readonly Statement[], options: DoOptions = {}): Promise<Cells[][]> {
    const startMs = this.#clock.mono()
    let left = options.repeatable ? this.#pool.options.max : 0
    for (let tries = 1; ; tries++) {
      try {
        return await this.#attempt(statements)
      } catch (error) {
        if (isCollision(error) && tries < maxTries) {
          await sleep(this.#clock, this.#clock.random() * 5 * 2 ** tries)
          continue
        }
        if (!(error instanceof LostAnswer)) throw toRedriveError(error, this.place, tenant)
        const quick = this.#clock.mono() - startMs < quickMs
        if (left === 0 || !quick) throw this.#unknown(error)
        left -= 1
      }
    }
  }

  /**
   * Settles in on a connection that is ours alone. Behind a pooler it is not: the server knows it by another number than the one that we
   * were given. What is done before this is through goes the way that is right everywhere.
   */
  async #moveInto(client: PoolClient): Promise<void> {
    try {
      const { rows } = await client.query<Cells>({
        text: 'SELECT pg_backend_pid()',
        rowMode: 'array',
      })
      if (rows[0]![0] !== numberOf(client)) return
      await client.query(forGood)
      this.#own.add(client)
    } catch {
      // Whoever uses the connection hears of it.
    }
  }

  async #attempt(statements: readonly Statement[]): Promise<Cells[][]> {
    const client = await this.#pool.connect()
    let broken = false
    try {
      const [[sql, values], ...others] = statements as [Statement, ...Statement[]]
      const alone = others.length === 0 && !this.#lazy && this.#own.has(client)
      if (alone) return [await this.#send(client, this.#prepare(sql), values)]
      return await this.#transact(client, statements)
    } catch (error) {
      const lost = isLost(error)
      // After a bug of ours the transaction may still be open.
      broken = lost || isBug(error)
      throw lost ? new LostAnswer(error) : error
    } finally {
      client.release(broken)
    }
  }

  async #transact(client: PoolClient, statements: readonly Statement[]): Promise<Cells[][]> {
    const begun = client.query(this.#begin)
    const sent = statements.map(([sql, values]) =>
      this.#send(client, { text: this.#textOf(sql) }, values),
    )
    const committed = client.query('COMMIT')
    // All answers, so that the connection is free; the first that failed says why.
    const answers = await Promise.allSettled([begun, ...sent, committed])
    const failed = answers.find((answer) => answer.status === 'rejected')
    if (failed) throw failed.reason
    if ((await committed).command !== 'COMMIT') throw new Error('the server rolled back')
    return Promise.all(sent)
  }

  async #send(
    client: PoolClient,
    statement: { text: string; name?: string },
    values: readonly unknown[] = [],
  ): Promise<Cells[]> {
    const query = { ...statement, values: [...values], rowMode: 'array' as const, types }
    const { rows } = await client.query<Cells>(query)
    return rows
  }

  /** With a name it is parsed and planned once for each connection. */
  #prepare(sql: string): { name: string; text: string } {
    const known = this.#prepared.get(sql)
    if (known) return known
    const made = { name: `redrive_${this.#prepared.size}`, text: this.#textOf(sql) }
    this.#prepared.set(sql, made)
    return made
  }

  #textOf(sql: string): string {
    return sql.replaceAll('@', `"${this.schema}".`)
  }

  #unknown(cause: LostAnswer): RedriveError {
    return new RedriveError(
      tenant.unavailable,
      `${this.place}: ${cause.message}; what was asked may or may not be done, and asking again is harmless`,
      { cause },
    )
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}

/** By which the server said to know the connection. `pg` has this, and its types do not say so. */
function numberOf(client: PoolClient): unknown {
  return (client as unknown as { processID: unknown }).processID
}

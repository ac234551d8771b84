import { Client, type ClientConfig, type CustomTypesConfig, type Pool, type PoolClient } from 'pg'
import { sleep, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Address } from '../../backends/postgres/address.ts'
import {
  answerTimeoutMs,
  begin,
  beginSnapshot,
  configOf,
  durably,
  poolOf,
  types,
} from '../../backends/postgres/connection.ts'
import { isCollision, isLost, toRedriveError } from './trouble.ts'

export type Value = unknown
export type Cells = Value[]

/** Statements of one transaction. `@` stands for the schema. */
export interface Tx {
  /** Sends at once, behind what was sent before, and gives the rows. Whoever does not need them need not wait. */
  rows(sql: string, values?: Value[], timeoutMs?: number): Promise<Cells[]>
}

export interface TransactionOptions {
  /** Harmless to do twice, so that it may be repeated though nobody knows whether it happened. */
  repeatable?: boolean
  /** Reads only, and all that it reads is of one moment. */
  snapshot?: boolean
}

export interface ReadOptions {
  side?: Side
  timeoutMs?: number
}

/**
 * Whose connections are used. `hot` is for what workers live by: capture, claim, renew, settle. Reads and long work have their own, and
 * so can never keep a worker waiting.
 */
export type Side = 'hot' | 'cold'

/** The way to the server: reads, and transactions that are repeated when another writer was first. */
export interface Link {
  readonly place: string
  readonly schema: string
  read(sql: string, values?: Value[], options?: ReadOptions): Promise<Cells[]>
  transaction<T>(side: Side, work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** A connection of its own, not yet connected. */
  client(): Client
  /** From now on commits wait for the disk, although the server's default is not to. */
  commitDurably(): void
  qualified(sql: string): string
  /** Ends all connections. The next statement makes others. */
  disconnect(): Promise<void>
  close(): Promise<void>
}

/** So often what collides with others is done before it is told. */
export const maxTries = 8
/** After a failure that took longer than this a repetition would keep the caller waiting for too long. */
const quickMs = 1000

/** The commit was sent, and no answer came. */
class LostCommit extends Error {
  constructor(cause: unknown) {
    super('the connection was lost while a commit was on its way', { cause })
  }
}

export function openLink(address: Address, clock: Clock): Link {
  return new PostgresLink(address, clock)
}

/** As much of a connection of `pg` as is used here: a `Client`, or one that a `Pool` gave. */
export interface Connection {
  query(config: {
    text: string
    values: Value[]
    rowMode: 'array'
    types: CustomTypesConfig
    query_timeout?: number
  }): Promise<Answer | Answer[]>
}

/** Of several statements `pg` gives a list of answers. */
interface Answer {
  rows: Cells[]
}

/** Sends a statement on a connection and gives its rows as lists; of several, which can have no values, those of the last. */
export async function rowsOf(
  client: Connection,
  text: string,
  values: Value[] = [],
  timeoutMs?: number,
): Promise<Cells[]> {
  const limit = timeoutMs === undefined ? {} : { query_timeout: timeoutMs }
  const result = await client.query({ text, values, rowMode: 'array', types, ...limit })
  return [result].flat().at(-1)!.rows
}

class PostgresLink implements Link {
  readonly place: string
  readonly schema: string
  readonly #config: ClientConfig
  readonly #clock: Clock
  readonly #poolSize: number
  #pools: Record<Side, Pool>
  #begin = begin

  constructor(address: Address, clock: Clock) {
    this.place = address.place
    this.schema = address.schema
    this.#clock = clock
    this.#config = configOf(address.url)
    this.#poolSize = address.poolSize
    this.#pools = this.#newPools()
  }

  #newPools(): Record<Side, Pool> {
    const hot = Math.ceil(this.#poolSize / 2)
    const cold = this.#poolSize - hot
    return { hot: poolOf(this.#config, hot), cold: poolOf(this.#config, cold) }
  }

  client(): Client {
    return new Client(this.#config)
  }

  commitDurably(): void {
    this.#begin = begin + durably
  }

  qualified(sql: string): string {
    return sql.replaceAll('@', `"${this.schema}".`)
  }

  async read(sql: string, values: Value[] = [], options: ReadOptions = {}): Promise<Cells[]> {
    const { side = 'cold', timeoutMs = answerTimeoutMs } = options
    const text = this.qualified(sql)
    const query = { text, values, rowMode: 'array', types, query_timeout: timeoutMs } as const
    const pool = this.#pools[side]
    const startMs = this.#clock.mono()
    for (let cutOff = 0; ;)
      try {
        return (await pool.query<Cells>(query)).rows
      } catch (error) {
        const quick = this.#clock.mono() - startMs < quickMs
        if (!isLost(error) || ++cutOff > pool.options.max || !quick)
          throw toRedriveError(error, this.place)
      }
  }

  /**
   * What collides with another transaction is begun afresh, a few times. What is cut off before the commit was sent has not
   * happened, and is done once more for each connection of the pool: all of them may have been lost at once. So is what is cut off after
   * it, where that is harmless; else nobody knows.
   * (The server could be asked by the number of the transaction, but it gives numbers out again after a crash.)
   */
  async transaction<T>(
    side: Side,
    work: (tx: Tx) => Promise<T>,
    { snapshot = false, repeatable = snapshot }: TransactionOptions = {},
  ): Promise<T> {
    const { max } = this.#pools[side].options
    const startMs = this.#clock.mono()
    let cutOff = 0
    for (let tries = 1; ; tries++) {
      try {
        return await this.#attempt(side, snapshot ? beginSnapshot : this.#begin, work)
      } catch (error) {
        const quick = this.#clock.mono() - startMs < quickMs
        if (isCollision(error)) {
          if (tries >= maxTries) throw toRedriveError(error, this.place)
          await sleep(this.#clock, this.#clock.random() * 5 * 2 ** tries)
        } else if (error instanceof LostCommit) {
          if (!repeatable || ++cutOff > max || !quick) throw this.#unknown(error)
        } else if (!isLost(error) || ++cutOff > max || !quick)
          throw toRedriveError(error, this.place)
      }
    }
  }

  async #attempt<T>(side: Side, opening: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#pools[side].connect()
    const sent: Promise<unknown>[] = []
    const send = <R>(answer: Promise<R>): Promise<R> => {
      // Each is awaited in its turn; until then no failure may count as unhandled.
      answer.catch(() => {})
      sent.push(answer)
      return answer
    }
    let committing = false
    let broken = false
    void send(client.query(opening))
    try {
      const tx: Tx = {
        rows: (sql, values, timeoutMs) =>
          send(rowsOf(client, this.qualified(sql), values, timeoutMs)),
      }
      const value = await work(tx)
      committing = true
      const committed = send(client.query('COMMIT'))
      await Promise.all(sent)
      if ((await committed).command !== 'COMMIT') throw new Error('the server rolled back')
      return value
    } catch (thrown) {
      const error = firstTrouble(await Promise.allSettled(sent)) ?? thrown
      broken = isLost(error) || !(await rolledBack(client))
      if (committing && isLost(error)) throw new LostCommit(error)
      throw error
    } finally {
      client.release(broken)
    }
  }

  #unknown({ message, cause }: LostCommit): RedriveError {
    return new RedriveError(
      'STORE_UNAVAILABLE',
      `${this.place}: ${message}; what was sent may or may not be kept, and repeating it is harmless`,
      { cause },
    )
  }

  async disconnect(): Promise<void> {
    const { hot, cold } = this.#pools
    this.#pools = this.#newPools()
    await Promise.all([hot.end(), cold.end()])
  }

  async close(): Promise<void> {
    await Promise.all([this.#pools.hot.end(), this.#pools.cold.end()])
  }
}

/** What the first that failed says: all that was sent behind it hears only that the transaction is aborted. */
function firstTrouble(answers: PromiseSettledResult<unknown>[]): unknown {
  return answers.find((answer) => answer.status === 'rejected')?.reason
}

async function rolledBack(client: PoolClient): Promise<boolean> {
  try {
    await client.query('ROLLBACK')
    return true
  } catch {
    return false
  }
}

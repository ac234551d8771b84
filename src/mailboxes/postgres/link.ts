import { Client, type ClientConfig, type Pool } from 'pg'
import { sleep, type Clock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Address } from '../../postgres/address.ts'
import { begin, configOf, durably, poolOf, types } from '../../postgres/connection.ts'
import type { Read } from '../../postgres/inspect.ts'
import type { Tenant } from '../../postgres/tenant.ts'
import { isBug, isCollision, isLost, troubleOf } from '../../postgres/trouble.ts'

const tenant: Tenant = { noun: 'mailbox', unavailable: 'MAILBOX_UNAVAILABLE' }

export type Cells = unknown[]

/** A statement and its values. `@` stands for the schema. */
export type Statement = readonly [sql: string, values?: readonly unknown[]]

interface DoOptions {
  /** Harmless to do twice, so that it is done once more when nobody knows whether it happened. */
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
const byIndex = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin']
  .map((way) => `SET LOCAL enable_${way} = off;`)
  .join(' ')

const beginning = `${begin} ${byIndex}`

export function openLink(address: Address, clock: Clock): Link {
  return new PostgresLink(address, clock)
}

class PostgresLink implements Link {
  readonly place: string
  readonly schema: string
  readonly #config: ClientConfig
  readonly #clock: Clock
  readonly #pool: Pool
  #begin = beginning

  constructor(address: Address, clock: Clock) {
    this.place = address.place
    this.schema = address.schema
    this.#clock = clock
    this.#config = configOf(address.url)
    this.#pool = poolOf(this.#config, address.poolSize)
  }

  client(): Client {
    return new Client(this.#config)
  }

  commitDurably(): void {
    this.#begin = beginning + durably
  }

  /** What collides with another transaction is begun afresh, a few times. */
  async do(statements: readonly Statement[], options: DoOptions = {}): Promise<Cells[][]> {
    const startMs = this.#clock.mono()
    let again = options.repeatable ?? false
    for (let tries = 1; ; tries++) {
      try {
        return await this.#attempt(statements)
      } catch (error) {
        if (isCollision(error) && tries < maxTries) {
          await sleep(this.#clock, this.#clock.random() * 5 * 2 ** tries)
          continue
        }
        if (!(error instanceof LostAnswer)) throw troubleOf(error, this.place, tenant)
        const quick = this.#clock.mono() - startMs < quickMs
        if (!again || !quick) throw this.#unknown(error)
        again = false
      }
    }
  }

  async #attempt(statements: readonly Statement[]): Promise<Cells[][]> {
    const client = await this.#pool.connect()
    let broken = false
    try {
      const begun = client.query(this.#begin)
      const sent = statements.map(([sql, values = []]) => {
        const text = sql.replaceAll('@', `"${this.schema}".`)
        return client.query<Cells>({ text, values: [...values], rowMode: 'array', types })
      })
      const committed = client.query('COMMIT')
      // All answers, so that the connection is free; the first that failed says why.
      const answers = await Promise.allSettled([begun, ...sent, committed])
      const failed = answers.find((answer) => answer.status === 'rejected')
      if (failed) throw failed.reason
      if ((await committed).command !== 'COMMIT') throw new Error('the server rolled back')
      return (await Promise.all(sent)).map(({ rows }) => rows)
    } catch (error) {
      const lost = isLost(error)
      // After a bug of ours the transaction may still be open.
      broken = lost || isBug(error)
      throw lost ? new LostAnswer(error) : error
    } finally {
      client.release(broken)
    }
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

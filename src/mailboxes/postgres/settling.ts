import { Batcher } from '../../backends/batcher.ts'
import { isUnknownOutcome, type PostgresConnection } from '../../backends/postgres/connection.ts'

/** A delivery, named by the message, how often it was delivered by then, and until when it is hidden if nobody extends it. */
export interface Receipt {
  seq: number
  deliveries: number
  untilMs: number
}

export function writeReceipt({ seq, deliveries, untilMs }: Receipt): string {
  return `${seq}.${deliveries}.${untilMs}`
}

/** Undefined: this is no receipt of ours, and so nothing that could hold. */
function readReceipt(text: string): Receipt | undefined {
  const [seq, deliveries, untilMs] = text.split('.').map(Number)
  if (![seq, deliveries, untilMs].every((part) => Number.isSafeInteger(part))) return undefined
  return { seq: seq!, deliveries: deliveries!, untilMs: untilMs! }
}

/** One verb on receipts: many calls go together as one statement. False: the receipt does not hold, and nothing was done. */
export interface Settling<How> {
  call(receipt: string, how: How): Promise<boolean>
  idle(): Promise<void>
}

/** Calls of one statement at the most, and statements that may be on their way at once. */
const batches = { maxInFlight: 2, maxBatchCost: 500 }
/** Receipts of which nobody knows what became. More than that are forgotten, the oldest first. */
const maxDoubts = 10_000

/**
 * When the connection is lost before the answer comes, nobody knows what became of a receipt. The one who asked asks again, and if it was
 * done the first time, the receipt does not hold any more. He must not hear that he lost it: such receipts are remembered. As long as
 * its time is not up, nobody else can have had the message, so that only the first try can have settled it.
 */
export function settling<How>(
  connection: PostgresConnection,
  mailbox: number,
  sql: string,
  /** The values of each call, one column for each that the statement takes beside the receipts. */
  columns: ((how: How) => unknown)[],
): Settling<How> {
  return new GatheredSettling(connection, mailbox, sql, columns)
}

interface Asked<How> {
  text: string
  receipt: Receipt
  how: How
}

class GatheredSettling<How> implements Settling<How> {
  readonly #connection: PostgresConnection
  readonly #mailbox: number
  readonly #sql: string
  readonly #columns: ((how: How) => unknown)[]
  readonly #calls: Batcher<Asked<How>, boolean>
  readonly #doubts = new Set<string>()

  constructor(
    connection: PostgresConnection,
    mailbox: number,
    sql: string,
    columns: ((how: How) => unknown)[],
  ) {
    this.#connection = connection
    this.#mailbox = mailbox
    this.#sql = sql
    this.#columns = columns
    this.#calls = new Batcher(batches, (asked) => this.#carry(asked))
  }

  async call(text: string, how: How): Promise<boolean> {
    const receipt = readReceipt(text)
    return receipt ? this.#calls.call({ text, receipt, how }) : false
  }

  idle(): Promise<void> {
    return this.#calls.idle()
  }

  async #carry(asked: Asked<How>[]): Promise<{ value: boolean }[]> {
    const values = [
      this.#mailbox,
      asked.map(({ receipt }) => receipt.seq),
      asked.map(({ receipt }) => receipt.deliveries),
      ...this.#columns.map((column) => asked.map(({ how }) => column(how))),
    ]
    try {
      const [row] = await this.#connection.execute(this.#sql, values)
      const [done, nowMs] = row as [number[], number]
      const left = new Set(done.map(Number))
      // Of two calls with one receipt in the batch, one has done it.
      return asked.map(({ text, receipt }) => ({
        value: left.delete(receipt.seq) || (this.#doubts.delete(text) && nowMs < receipt.untilMs),
      }))
    } catch (error) {
      if (isUnknownOutcome(error)) for (const { text } of asked) this.#doubt(text)
      throw error
    }
  }

  #doubt(text: string): void {
    this.#doubts.add(text)
    if (this.#doubts.size <= maxDoubts) return
    for (const oldest of this.#doubts) {
      this.#doubts.delete(oldest)
      return
    }
  }
}

import { Batcher } from '../../backends/batcher.ts'
import { isUnknownOutcome, type PostgresConnection } from '../../backends/postgres/connection.ts'

/** A delivery: the message, its number of deliveries, and how long it is hidden if not extended. */
export interface Receipt {
  seq: number
  deliveries: number
  untilMs: number
}

export function writeReceipt({ seq, deliveries, untilMs }: Receipt): string {
  return `${seq}.${deliveries}.${untilMs}`
}

/** Undefined: the string is not a receipt of ours. */
function readReceipt(text: string): Receipt | undefined {
  const [seq, deliveries, untilMs] = text.split('.').map(Number)
  if (![seq, deliveries, untilMs].every((part) => Number.isSafeInteger(part))) return undefined
  return { seq: seq!, deliveries: deliveries!, untilMs: untilMs! }
}

const limits = { maxInFlight: 2, maxBatchCost: 500 }
/** Receipts with an unknown outcome to remember. Beyond it, the oldest are forgotten. */
const maxUnknown = 10_000

interface SettleRequest<Options> {
  text: string
  receipt: Receipt
  options: Options
}

/**
 * Runs one kind of settlement on receipts, in batches.
 *
 * When the connection is lost before the answer arrives, the outcome is unknown. The caller tries
 * again, and if the first try was committed, the receipt is no longer valid. That must not look
 * like a lost receipt, so such receipts are remembered: until the message becomes visible again,
 * nobody else can have received it, and only the first try can have settled it.
 */
export class Settler<Options> {
  readonly #connection: PostgresConnection
  readonly #mailbox: number
  readonly #sql: string
  readonly #columns: ((options: Options) => unknown)[]
  readonly #calls: Batcher<SettleRequest<Options>, boolean>
  readonly #unknown = new Set<string>()

  /** `columns` are the values of each call that the statement takes after the receipts. */
  constructor(
    connection: PostgresConnection,
    mailbox: number,
    sql: string,
    columns: ((options: Options) => unknown)[],
  ) {
    this.#connection = connection
    this.#mailbox = mailbox
    this.#sql = sql
    this.#columns = columns
    this.#calls = new Batcher(limits, (requests) => this.#settleAll(requests))
  }

  /** False: the receipt is not valid, and nothing was done. */
  async settle(text: string, options: Options): Promise<boolean> {
    const receipt = readReceipt(text)
    return receipt ? this.#calls.call({ text, receipt, options }) : false
  }

  idle(): Promise<void> {
    return this.#calls.idle()
  }

  async #settleAll(requests: SettleRequest<Options>[]): Promise<{ value: boolean }[]> {
    const values = [
      this.#mailbox,
      requests.map(({ receipt }) => receipt.seq),
      requests.map(({ receipt }) => receipt.deliveries),
      ...this.#columns.map((column) => requests.map(({ options }) => column(options))),
    ]
    try {
      const [row] = await this.#connection.execute(this.#sql, values)
      const [settled, nowMs] = row as [number[], number]
      const left = new Set(settled.map(Number))
      // Of two calls with the same receipt in a batch, one succeeds.
      return requests.map(({ text, receipt }) => ({
        value: left.delete(receipt.seq) || (this.#unknown.delete(text) && nowMs < receipt.untilMs),
      }))
    } catch (error) {
      if (isUnknownOutcome(error)) for (const { text } of requests) this.#remember(text)
      throw error
    }
  }

  #remember(text: string): void {
    this.#unknown.add(text)
    if (this.#unknown.size <= maxUnknown) return
    for (const oldest of this.#unknown) {
      this.#unknown.delete(oldest)
      return
    }
  }
}

import { queryRows, sendQuery, type Cells, type Queryable } from './query.ts'

/** Statements of one transaction on one connection. In SQL, `@` stands for the schema. */
export class Transaction {
  /** Whether COMMIT was sent, so that a lost connection leaves the outcome unknown. */
  isCommitSent = false
  readonly #client: Queryable
  readonly #schema: { qualify(sql: string): string }
  readonly #isPipelined: boolean
  readonly #sent: Promise<unknown>[] = []

  /**
   * `beginning` is sent first. Without it, the transaction is the caller's, and its statements are
   * sent one by one.
   */
  constructor(client: Queryable, schema: { qualify(sql: string): string }, beginning?: string) {
    this.#client = client
    this.#schema = schema
    this.#isPipelined = beginning !== undefined && isPipelined(client)
    if (beginning !== undefined) void this.#send(() => sendQuery(client, beginning))
  }

  /**
   * Sends a statement behind those sent before, and returns its rows. A caller that needs no rows
   * need not wait for them.
   */
  rows(sql: string, values?: unknown[], timeoutMs?: number): Promise<Cells[]> {
    return this.#send(() => queryRows(this.#client, this.#schema.qualify(sql), values, timeoutMs))
  }

  /** Commits, and rejects with the first failure of any statement. */
  async commit(): Promise<void> {
    const answer = this.#send(() => {
      this.isCommitSent = true
      return sendQuery(this.#client, 'COMMIT')
    })
    await this.settle()
    if ((await answer).command !== 'COMMIT') throw new Error('the server rolled back')
  }

  /** Waits for the answers to all statements sent so far, and rejects with the first failure. */
  async settle(): Promise<void> {
    const answers = await Promise.allSettled(this.#sent)
    const failed = answers.find((answer) => answer.status === 'rejected')
    if (failed) throw failed.reason
  }

  /** The first failure of a statement, once all are answered. */
  firstError(): Promise<unknown> {
    return this.settle().then(
      () => undefined,
      (error: unknown) => error,
    )
  }

  #send<R>(query: () => Promise<R>): Promise<R> {
    // Without pipelining, a statement waits for the one before, and is not sent when that fails.
    const answer = this.#isPipelined ? query() : this.settle().then(query)
    // Nobody may await the answer; its failure is reported by `settle`.
    answer.catch(() => {})
    this.#sent.push(answer)
    return answer
  }
}

/** Whether the connection sends a statement before the answer to the one before has come. */
function isPipelined(client: Queryable): boolean {
  return (client as { pipeline?: boolean }).pipeline === true
}

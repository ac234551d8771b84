import { RedriveError } from '../../errors.ts'
import { sqlStateOf, StateChanged, toRedriveError } from '../../backends/postgres/errors.ts'
import type { AddResult } from '../../store.ts'
import { addIn, candidatesOf, type Candidate, type AddRequest } from './add.ts'
import { isAnyDue, type StoreContext } from './context.ts'
import { drawSlot } from './counters.ts'
import { maxTries } from '../../backends/postgres/connection.ts'
import { queryRows, type Queryable } from '../../backends/postgres/query.ts'
import { Transaction } from '../../backends/postgres/transaction.ts'
import { tenant } from './tenant.ts'

/**
 * Adds letters in a transaction that the caller has begun on this connection. Watchers are notified
 * when it commits. On failure, the transaction is rolled back to where it was before.
 */
export async function addWithin(
  context: StoreContext,
  client: Queryable,
  channel: string,
  wanted: readonly AddRequest[],
): Promise<AddResult[]> {
  const { place } = context.connection
  try {
    if (typeof (client as Partial<Queryable> | null)?.query !== 'function')
      throw noTransactionError(place)
    const candidates = await candidatesOf(context, wanted)
    return await runInTurn(client, async () => {
      await setSavepointOn(client, place)
      return addWithRetries(context, client, channel, candidates)
    })
  } catch (error) {
    throw toRedriveError(error, place, tenant)
  }
}

const lastCalls = new WeakMap<Queryable, Promise<unknown>>()

/** Runs calls on a connection one at a time, so that each rolls back to its own savepoint. */
function runInTurn<T>(client: Queryable, work: () => Promise<T>): Promise<T> {
  const turn = (lastCalls.get(client) ?? Promise.resolve()).then(work)
  const over = turn.catch(() => {})
  lastCalls.set(client, over)
  return turn
}

const setSavepoint = `SAVEPOINT redrive; SELECT current_setting('transaction_isolation')`
const rollBackToSavepoint = 'ROLLBACK TO SAVEPOINT redrive'
const releaseSavepoint = 'RELEASE SAVEPOINT redrive'

/** Sets a savepoint, and rejects isolation levels in which the writes of others are not visible. */
async function setSavepointOn(client: Queryable, place: string): Promise<void> {
  const [row] = await queryRows(client, setSavepoint).catch((error: unknown) => {
    throw sqlStateOf(error) === '25P01' ? noTransactionError(place) : error
  })
  const level = row?.[0] as string
  if (level === 'read committed' || level === 'read uncommitted') return
  await queryRows(client, releaseSavepoint)
  throw new RedriveError(
    'INVALID_INPUT',
    `${place}: a transaction with isolation level ${level} does not see concurrent captures: begin it with BEGIN ISOLATION LEVEL READ COMMITTED, or capture without client`,
  )
}

function noTransactionError(place: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `${place}: client must be a pg connection with a transaction: send BEGIN on it first, and pass the connection, not its Pool`,
  )
}

async function addWithRetries(
  context: StoreContext,
  client: Queryable,
  channel: string,
  candidates: readonly Candidate[],
): Promise<AddResult[]> {
  for (let tries = 1; ; tries++) {
    const tx = new Transaction(client, context.connection)
    try {
      // A separate slot, since its rows stay locked until the caller commits.
      const { results, dueTimes } = await addIn(context, tx, candidates, drawSlot(context.clock))
      await tx.settle()
      if (isAnyDue(context, dueTimes))
        void tx.rows('SELECT pg_notify($1, $2)', [channel, 'a transaction'])
      await tx.rows(releaseSavepoint)
      return results
    } catch (error) {
      await tx.settle().catch(() => {})
      if (error instanceof StateChanged && tries < maxTries) {
        await queryRows(client, rollBackToSavepoint)
        continue
      }
      // If the rollback fails too, the first error is the cause.
      await queryRows(client, `${rollBackToSavepoint}; ${releaseSavepoint}`).catch(() => {})
      throw error
    }
  }
}

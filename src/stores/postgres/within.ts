import { RedriveError } from '../../errors.ts'
import { sqlStateOf, StateChanged, toRedriveError } from '../../backends/postgres/errors.ts'
import type { AddResult } from '../../store.ts'
import { addIn, candidatesOf, type Candidate, type Wanted } from './add.ts'
import type { Books } from './books.ts'
import { drawSlot } from './counters.ts'
import { maxTries } from '../../backends/postgres/connection.ts'
import { queryRows, type Queryable } from '../../backends/postgres/query.ts'
import { Transaction } from '../../backends/postgres/transaction.ts'
import { tenant } from './tenant.ts'

/**
 * Adds in the transaction that the caller has begun on this connection. Whoever watches hears of it when it commits. When it fails, the
 * transaction stands where it stood before.
 */
export async function addWithin(
  books: Books,
  client: Queryable,
  channel: string,
  wanted: readonly Wanted[],
): Promise<AddResult[]> {
  const { place } = books.connection
  try {
    if (typeof (client as Partial<Queryable> | null)?.query !== 'function') throw notBegun(place)
    const candidates = await candidatesOf(books, wanted)
    return await inTurn(client, async () => {
      await mark(client, place)
      return adding(books, client, channel, candidates)
    })
  } catch (error) {
    throw toRedriveError(error, place, tenant)
  }
}

const turns = new WeakMap<Queryable, Promise<unknown>>()

/** One at a time on a connection: who goes back to its mark must find its own there. */
function inTurn<T>(client: Queryable, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(client) ?? Promise.resolve()).then(work)
  const over = turn.catch(() => {})
  turns.set(client, over)
  return turn
}

const setMark = `SAVEPOINT redrive; SELECT current_setting('transaction_isolation')`
const backToMark = 'ROLLBACK TO SAVEPOINT redrive'
const dropMark = 'RELEASE SAVEPOINT redrive'

/** Marks where the transaction stands, and refuses one in which locks would not hold, or in which what others did is not seen. */
async function mark(client: Queryable, place: string): Promise<void> {
  const [row] = await queryRows(client, setMark).catch((error: unknown) => {
    throw sqlStateOf(error) === '25P01' ? notBegun(place) : error
  })
  const level = row?.[0] as string
  if (level === 'read committed' || level === 'read uncommitted') return
  await queryRows(client, dropMark)
  throw new RedriveError(
    'INVALID_INPUT',
    `${place}: a transaction that is ${level} does not see what others captured meanwhile: begin it with BEGIN ISOLATION LEVEL READ COMMITTED, or capture without client`,
  )
}

function notBegun(place: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `${place}: client must be a connection of pg on which a transaction was begun: send BEGIN on it first, and give the connection itself, not its Pool`,
  )
}

async function adding(
  books: Books,
  client: Queryable,
  channel: string,
  candidates: readonly Candidate[],
): Promise<AddResult[]> {
  for (let tries = 1; ; tries++) {
    const tx = new Transaction(client, books.connection)
    try {
      // A slot of its own: its rows stay locked until the caller commits.
      const { results, woken } = await addIn(books, tx, candidates, drawSlot(books.clock))
      await tx.settle()
      if (await woken) void tx.rows('SELECT pg_notify($1, $2)', [channel, 'a transaction'])
      await tx.rows(dropMark)
      return results
    } catch (error) {
      await tx.settle().catch(() => {})
      if (error instanceof StateChanged && tries < maxTries) {
        await queryRows(client, backToMark)
        continue
      }
      // Where there is no way back, what went wrong first says why.
      await queryRows(client, `${backToMark}; ${dropMark}`).catch(() => {})
      throw error
    }
  }
}

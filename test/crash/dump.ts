import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../src/clock.ts'
import { connect } from '../../src/connect.ts'
import type { Action, DeadLetter, Reason, State } from '../../src/letter/letter.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import type { Store } from '../../src/store.ts'
import type { Dump } from './judge.ts'
import { shaOf } from './plan.ts'
import type { Stored } from './rules.ts'

/** How states stand in the file. Written down here again, since this side must not ask the product. */
const states: State[] = ['pending', 'retrying', 'resolved', 'exhausted', 'parked', 'archived']

function openFile(url: string): DatabaseSync {
  return new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true, timeout: 5000 })
}

/** How many letters are not at rest, straight from the file. */
export function unsettledRows(url: string): number {
  const db = openFile(url)
  try {
    return db.prepare('SELECT count(*) AS n FROM letters WHERE state < 2').get()?.['n'] as number
  } finally {
    db.close()
  }
}

interface Row {
  seq: number
  id: string
  state: number
  reason: string | null
  epoch: number
  retries: number
  rest: string
  origin: string | null
  bytes: Uint8Array | null
}

/** The store as it lies in the file, read with plain SQL. */
export function dumpRaw(url: string): Dump {
  const db = openFile(url)
  try {
    const rows = db
      .prepare(
        `SELECT seq, id, state, reason, epoch, retries, rest, origin, bytes
         FROM letters LEFT JOIN bodies USING (seq) ORDER BY id`,
      )
      .all() as unknown as Row[]
    const history = db.prepare('SELECT entry FROM history WHERE seq = ? ORDER BY n')
    const letters = rows.map((row) =>
      storedOf(
        row,
        history.all(row.seq).map(({ entry }) => String(entry)),
      ),
    )
    const byState: Dump['byState'] = {}
    for (const { state, n } of db
      .prepare('SELECT state, count(*) AS n FROM letters GROUP BY 1')
      .all())
      byState[states[Number(state)]!] = Number(n)
    const queues = db.prepare(
      'SELECT name, count(*) AS n FROM letters JOIN queues ON queues.id = queue GROUP BY 1',
    )
    const byQueue = Object.fromEntries(queues.all().map(({ name, n }) => [String(name), Number(n)]))
    return { letters, byState, byQueue, problems: problemsIn(db) }
  } finally {
    db.close()
  }
}

/** The first entry of the history lies with what never changes, the others beside it. */
function storedOf(row: Row, later: string[]): Stored {
  const { entry } = JSON.parse(row.origin ?? '{}') as { entry?: { action: Action } }
  const entries = later.map((text) => JSON.parse(text) as { action: Action })
  const { maxRetries } = JSON.parse(row.rest) as { maxRetries: number }
  return {
    id: row.id,
    state: states[row.state]!,
    ...(row.reason === null ? {} : { reason: row.reason as Reason }),
    epoch: row.epoch,
    retries: row.retries,
    maxRetries,
    sha: row.bytes ? shaOf(row.bytes) : 'no body',
    actions: [...(entry ? [entry] : []), ...entries].map(({ action }) => action),
  }
}

/** Rows without their other half, and what the file says about itself. */
function problemsIn(db: DatabaseSync): string[] {
  const count = (sql: string): number => Number(db.prepare(sql).get()?.['n'])
  const orphans = {
    bodies: count('SELECT count(*) AS n FROM bodies WHERE seq NOT IN (SELECT seq FROM letters)'),
    'history lines': count(
      'SELECT count(*) AS n FROM history WHERE seq NOT IN (SELECT seq FROM letters)',
    ),
  }
  const left = Object.entries(orphans).filter(([, n]) => n > 0)
  const integrity = db
    .prepare('PRAGMA integrity_check')
    .all()
    .map((row) => String(row['integrity_check']))
  return [
    ...left.map(([what, n]) => `${n} ${what} without a letter`),
    ...integrity.filter((line) => line !== 'ok').map((line) => `integrity check: ${line}`),
  ]
}

/** The store as the product tells it: every letter from its listing, and the counts that it keeps. */
export async function dumpApi(url: string): Promise<Dump> {
  const store = await connect(url, systemClock)
  const dlq = await DeadLetterQueue.open(store)
  try {
    const { letters, omitted } = await listed(dlq)
    const byState = Object.fromEntries(await store.tally('state')) as Dump['byState']
    const byQueue = Object.fromEntries(await store.tally('queue'))
    const health = await store.health()
    const problems = [...health.problems, ...(omitted > 0 ? [] : await totalsDrift(store, letters))]
    return { letters, byState, byQueue, problems }
  } finally {
    await dlq.close()
  }
}

async function listed(dlq: DeadLetterQueue): Promise<{ letters: Stored[]; omitted: number }> {
  const letters: Stored[] = []
  let omitted = 0
  for (let cursor: string | undefined, more = true; more;) {
    const page = await dlq.find({
      order: 'oldest',
      limit: 500,
      payload: true,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const letter of page.items) {
      letters.push(toldOf(letter))
      omitted += letter.historyOmitted
    }
    cursor = page.cursor
    more = cursor !== undefined
  }
  return { letters, omitted }
}

function toldOf(letter: DeadLetter): Stored {
  const { id, state, reason, epoch, retries, maxRetries, payload, history, corrupt } = letter
  return {
    id,
    state,
    ...(reason === undefined ? {} : { reason }),
    epoch,
    retries,
    maxRetries,
    sha: corrupt ?? shaOf(payload.bytes),
    actions: history.map(({ action }) => action),
  }
}

/** The lifetime totals must be what the letters' own histories add up to, as long as these are whole. */
async function totalsDrift(store: Store, letters: readonly Stored[]): Promise<string[]> {
  const totals = new Map<string, number>()
  for (const { action, count } of await store.totals())
    totals.set(action, (totals.get(action) ?? 0) + count)
  const expected = new Map<string, number>([
    ['claim', letters.reduce((sum, { epoch }) => sum + epoch, 0)],
  ])
  for (const { actions } of letters)
    for (const action of actions)
      if (action !== 'claim') expected.set(action, (expected.get(action) ?? 0) + 1)
  return [...expected]
    .filter(([action, count]) => (totals.get(action) ?? 0) !== count)
    .map(
      ([action, count]) =>
        `total of ${action} is ${totals.get(action) ?? 0}, the letters have ${count}`,
    )
}

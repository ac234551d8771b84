import { systemClock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import type { CountedAction, DeadLetter } from '../../src/letter/letter.ts'
import { countsOf, countsOfCapture } from '../../src/letter/counts.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import type { Dump } from './verify.ts'
import { shaOf } from './plan.ts'
import { dumpTables } from './raw-postgres.ts'
import { dumpKeys } from './raw-redis.ts'
import { dumpFile, unsettledRows } from './raw-sqlite.ts'
import type { Stored } from './rules.ts'

/** Counts the letters that are not settled yet. */
interface View {
  unsettled: () => Promise<number>
  close: () => Promise<void>
}

export async function openView(url: string): Promise<View> {
  if (isFile(url))
    return { unsettled: async () => unsettledRows(url), close: () => Promise.resolve() }
  const store = await connect(url, systemClock)
  await store.open()
  const unsettled = async (): Promise<number> => {
    const { pending = 0, retrying = 0 } = Object.fromEntries(await store.tally('state'))
    return pending + retrying
  }
  return { unsettled, close: () => store.close() }
}

const isFile = (url: string): boolean => url.startsWith('sqlite:')

/** The stored letters, read without the product: from the file, the tables or the keys. */
export async function dumpRaw(url: string): Promise<Dump> {
  if (isFile(url)) return dumpFile(url)
  return url.startsWith('postgres') ? dumpTables(url) : dumpKeys(url)
}

/** The stored letters as the product lists and counts them. */
export async function dumpApi(url: string): Promise<Dump> {
  return dumpStore(await connect(url, systemClock))
}

/** The letters of a store, which is closed afterwards. */
export async function dumpStore(store: Store): Promise<Dump> {
  const dlq = await DeadLetterQueue.open(store)
  try {
    const { letters, counts, omitted } = await listLetters(dlq)
    const byState = Object.fromEntries(await store.tally('state')) as Dump['byState']
    const byQueue = Object.fromEntries(await store.tally('queue'))
    const health = await store.health()
    const problems = [
      ...health.problems,
      ...(omitted > 0 ? [] : await totalsDrift(store, letters, counts)),
    ]
    return { letters, byState, byQueue, problems }
  } finally {
    await dlq.close()
  }
}

interface Listing {
  letters: Stored[]
  /** The actions of the histories that the lifetime totals count. */
  counts: CountedAction[]
  /** Number of entries that the histories no longer have. */
  omitted: number
}

async function listLetters(dlq: DeadLetterQueue): Promise<Listing> {
  const letters: Stored[] = []
  const counts: CountedAction[] = []
  let omitted = 0
  for (let cursor: string | undefined, more = true; more;) {
    const page = await dlq.find({
      order: 'oldest',
      limit: 500,
      payload: true,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const letter of page.items) {
      letters.push(toStored(letter))
      counts.push(...countActions(letter))
      omitted += letter.historyOmitted
    }
    cursor = page.cursor
    more = cursor !== undefined
  }
  return { letters, counts, omitted }
}

function toStored(letter: DeadLetter): Stored {
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

function countActions({ history }: DeadLetter): CountedAction[] {
  return history.flatMap((entry) =>
    entry.action === 'capture'
      ? countsOfCapture(entry.to!)
      : countsOf({ action: entry.action, set: {}, entry }),
  )
}

/** The lifetime totals must equal the sum of the histories, as long as these are complete. */
async function totalsDrift(
  store: Store,
  letters: readonly Stored[],
  counts: readonly CountedAction[],
): Promise<string[]> {
  const totals = new Map<string, number>()
  for (const { action, count } of await store.totals())
    totals.set(action, (totals.get(action) ?? 0) + count)
  const expected = new Map<string, number>([
    ['claim', letters.reduce((sum, { epoch }) => sum + epoch, 0)],
  ])
  for (const action of counts)
    if (action !== 'claim') expected.set(action, (expected.get(action) ?? 0) + 1)
  return [...expected]
    .filter(([action, count]) => (totals.get(action) ?? 0) !== count)
    .map(
      ([action, count]) =>
        `total of ${action} is ${totals.get(action) ?? 0}, the letters have ${count}`,
    )
}

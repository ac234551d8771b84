import { states, type DeadLetter, type Payload } from '../../../src/letter/letter.ts'
import { archive, edit, release, resolve, restore, type Mover } from '../../../src/letter/moves.ts'
import type { Store } from '../../../src/store.ts'
import { aLetter } from '../../../src/testing/index.ts'

const by: Mover = { at: '2026-01-01T00:00:00.000Z', actor: 'ada', guard: 'version' }

const text = (words: string, version = 1): Payload => {
  const bytes = new TextEncoder().encode(words)
  return { bytes, contentType: 'text/plain', size: bytes.length, version }
}

/** Letters of a store with a history that a copy must preserve. */
export interface LivedIn {
  edited: DeadLetter
  /** Depends on `awaited`, and on a letter that was resolved and removed. */
  waiting: DeadLetter
  awaited: DeadLetter
  /** Two open letters with one dedupe key. */
  twins: DeadLetter[]
  leased: DeadLetter
}

/** Creates edits, records, leases, dependencies and duplicates, which `add` alone cannot. */
export async function liveIn(store: Store): Promise<LivedIn> {
  const readLetter = async ({ id }: DeadLetter): Promise<DeadLetter> => (await store.get([id]))[0]!
  const [captured] = aLetter().history
  // Its next entries exceed the limit of a history.
  const history = Array.from({ length: 49 }, () => captured!)
  const all = states.map((state) =>
    aLetter({
      state,
      queue: `of ${state}`,
      tags: [state],
      ...(state === 'pending' ? { history } : {}),
    }),
  )
  const first = aLetter({ queue: 'first' })
  const awaited = aLetter({ queue: 'awaited', state: 'parked' })
  const waiting = aLetter({ queue: 'waiting', dependsOn: [first.id, awaited.id] })
  const edited = aLetter({ queue: 'edited', payload: text('as captured'), headers: { a: 'b' } })
  const twins = [aLetter({ queue: 'twins', dedupeKey: 'k' })]
  await store.add([...all, first, awaited, waiting, edited, ...twins])

  await store.apply([resolve(first, by)])
  await store.remove({ ids: [first.id] })
  await store.apply([edit(edited, by, { payload: text('once', 2), priority: 'high' })])
  await store.apply([edit(await readLetter(edited), by, { payload: text('twice', 3) })])
  await store.records.put('edit', `${edited.id}:1`, { payload: 'as captured' })
  await store.records.put('edit', `${edited.id}:2`, { payload: 'once' })
  await store.records.put('worker', 'long-gone', { queues: [], seenAt: by.at })

  await store.apply([archive(twins[0]!, by)])
  twins.push(aLetter({ queue: 'twins', dedupeKey: 'k' }))
  await store.add([twins[1]!])
  await store.apply([restore(await readLetter(twins[0]!), by)])
  await store.add([aLetter({ queue: 'twins', dedupeKey: 'k' })])

  const request = { worker: 'w', limit: 1, queues: ['of pending'] }
  for (let n = 0; n < 3; n++) {
    const [held] = (await store.claim({ ...request, leaseMs: 60_000 })).letters
    await store.apply([release(held!, { ...by, guard: 'epoch' })])
  }
  const [leased] = (await store.claim({ ...request, leaseMs: 86_400_000 })).letters
  return { edited, waiting, awaited, twins, leased: leased! }
}

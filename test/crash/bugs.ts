import { systemClock } from '../../src/clock/clock.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Change } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { ApplyResult, Store } from '../../src/store.ts'
import type { ViolationKind } from './verify.ts'
import { override } from './override.ts'

export const bugNames = [
  'settle-without-epoch',
  'two-statement-claim',
  'rescuer-by-id',
  'attempts-on-failure',
  'ack-before-commit',
  'lease-by-own-clock',
] as const
export type BugName = (typeof bugNames)[number]

interface Bug {
  /** The violations of which at least one must be found. */
  shows: readonly ViolationKind[]
  plant: (store: Store) => Store
}

/**
 * Known mistakes of real queues, planted over a correct store. They use the store's own methods
 * with a guard that always matches, which equals no guard. A crash test that misses them proves
 * nothing.
 */
export const bugs: Record<BugName, Bug> = {
  'settle-without-epoch': {
    shows: ['stale_accepted', 'dup_settle', 'reopened'],
    plant: (store) =>
      override(store, {
        apply: async (changes) => {
          const results: ApplyResult[] = []
          for (const change of changes)
            results.push(await applyUnguarded(store, change.id, () => change))
          return results
        },
      }),
  },
  'two-statement-claim': {
    shows: ['overlap', 'dup_settle', 'stale_accepted', 'reopened'],
    plant: (store) =>
      override(store, {
        claim: async (request) => {
          const ids = (await findDue(store)).slice(0, request.limit)
          if (ids.length === 0) return { letters: [] }
          await sleepBetween(2, 15)
          for (const id of ids) await applyUnguarded(store, id, makeDue)
          return store.claim({ ...request, limit: ids.length })
        },
      }),
  },
  'rescuer-by-id': {
    shows: ['overlap', 'dup_settle', 'reopened'],
    plant: (store) => {
      const rescue = async (): Promise<void> => {
        const ids = await findExpired(store)
        await sleepBetween(30, 80)
        for (const id of ids) await applyUnguarded(store, id, makeDue)
      }
      const timer = setInterval(() => void rescue().catch(() => {}), 60)
      return override(store, {
        close: async () => {
          clearInterval(timer)
          await store.close()
        },
      })
    },
  },
  'attempts-on-failure': {
    shows: ['over_attempts', 'count_drift'],
    plant: (store) =>
      override(store, {
        claim: async (request) => {
          const claim = await store.claim(request)
          await store.apply(claim.letters.map(uncountRetry))
          return claim
        },
      }),
  },
  'ack-before-commit': {
    shows: ['lost'],
    plant: (store) =>
      override(store, {
        add: async (letters, capacity) => {
          void sleepBetween(5, 40)
            .then(() => store.add(letters, capacity))
            .catch(() => {})
          return letters.map(() => ({ kind: 'added' as const }))
        },
      }),
  },
  /** Planted where the store is opened: the store gets the wrong clock of its process. */
  'lease-by-own-clock': { shows: ['overlap'], plant: (store) => store },
}

export function plantBug(name: BugName, store: Store): Store {
  return bugs[name].plant(store)
}

function sleepBetween(low: number, high: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, low + systemClock.random() * (high - low))
  })
}

/** Overwrites the current letter, whatever its lease or state. */
async function applyUnguarded(
  store: Store,
  id: string,
  changeFor: (letter: DeadLetter) => Change,
): Promise<ApplyResult> {
  const maxTries = 10
  for (let tried = 1; ; tried++) {
    const [letter] = await store.get([id])
    if (!letter) return 'missing'
    const guard = { version: letter.version }
    const [result] = await store.apply([{ ...changeFor(letter), guard }])
    if (result !== 'conflict' || tried === maxTries) return result!
  }
}

async function findDue(store: Store): Promise<string[]> {
  const now = toTimestamp(systemClock.now())
  const { items } = await store.find({ state: 'pending', order: 'due', limit: 10 })
  const due = items.filter(({ retryAt }) => retryAt !== undefined && retryAt <= now)
  return [...(await findExpired(store)), ...due.map(({ id }) => id)]
}

async function findExpired(store: Store): Promise<string[]> {
  const now = toTimestamp(systemClock.now())
  const { items } = await store.find({ state: 'retrying', limit: 100 })
  return items.filter(({ lease }) => lease && lease.expiresAt <= now).map(({ id }) => id)
}

function makeDue(letter: DeadLetter): Change {
  const at = toTimestamp(systemClock.now())
  return {
    id: letter.id,
    guard: { version: letter.version },
    action: 'release',
    set: { state: 'pending', lease: null, retryAt: at, settledAt: null, reason: null },
    entry: { at, actor: 'bug', action: 'release', from: letter.state, to: 'pending' },
  }
}

/**
 * Undoes the count of the claim; the queue counts again when the run has failed, if it survives.
 */
function uncountRetry(letter: DeadLetter): Change {
  const at = toTimestamp(systemClock.now())
  return {
    id: letter.id,
    guard: { epoch: letter.epoch },
    action: 'edit',
    set: { retries: letter.retries - 1 },
    entry: { at, actor: 'bug', action: 'edit', from: letter.state, to: letter.state },
  }
}

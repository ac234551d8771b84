import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { states, type DeadLetter, type HistoryEntry, type State } from '../../src/letter/letter.ts'
import { appendHistory } from '../../src/letter/history.ts'
import { isLegal, moveTable, type Move } from '../../src/letter/move-table.ts'
import {
  archive,
  claim,
  edit,
  exhaust,
  note,
  occur,
  park,
  defer,
  release,
  reschedule,
  resolve,
  restore,
  retry,
  review,
  wake,
  withChange,
  type Change,
  type Judged,
  type Mover,
} from '../../src/letter/moves.ts'
import { letterFromJson, letterToJson } from '../../src/letter/schema.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { atDepth } from '../depth.ts'

const at = '2026-01-02T00:00:00.000Z'
const atMs = Date.parse(at)
const worker: Mover = { at, actor: 'worker-1', guard: 'epoch' }
const person: Mover = { at, actor: 'ada', guard: 'version', note: 'because' }

const judged: Judged = {
  failure: { name: 'TimeoutError', message: 'too slow', causes: [], at },
  category: 'timeout',
  severity: 'low',
  recoverability: 'retryable',
  fingerprint: 'f2',
}

/** Every move that makes a change, with arguments that fit. */
const changes = {
  resolve: (letter: DeadLetter) => resolve(letter, person),
  reschedule: (letter: DeadLetter) =>
    reschedule(letter, worker, { judged, retryAt: toTimestamp(atMs + 1000), backoffMs: 1000 }),
  exhaust: (letter: DeadLetter) => exhaust(letter, worker, { judged }),
  park: (letter: DeadLetter) => park(letter, worker, { reason: 'permanent', judged }),
  release: (letter: DeadLetter) => release(letter, worker),
  retry: (letter: DeadLetter) => retry(letter, person),
  wake: (letter: DeadLetter) => wake(letter, person),
  review: (letter: DeadLetter) => review(letter, person, 'requeue'),
  edit: (letter: DeadLetter) => edit(letter, person, { tags: ['edited'] }),
  note: (letter: DeadLetter) => note(letter, person),
  archive: (letter: DeadLetter) => archive(letter, person),
  restore: (letter: DeadLetter) => restore(letter, person),
} satisfies Partial<Record<Move, (letter: DeadLetter) => Change>>

const named = Object.entries(changes) as [keyof typeof changes, (letter: DeadLetter) => Change][]

describe('moves', () => {
  it.each(named.flatMap(([move, make]) => states.map((from) => ({ move, make, from }))))(
    '$move from $from follows the move table',
    ({ move, make, from }) => {
      const letter = aLetter({
        state: from,
        ...(from === 'archived' ? { archivedFrom: 'parked' } : {}),
      })
      if (!isLegal(move, from)) {
        expect(() => make(letter)).toThrow(`illegal move ${move}: ${from}`)
        return
      }
      const change = make(letter)
      expect(moveTable[move].to as readonly State[]).toContain(change.entry.to)
      expect(change).toMatchObject({
        id: letter.id,
        action: move,
        entry: { from, action: move, at },
      })
      expect(withChange(letter, change).state).toBe(change.entry.to)
    },
  )

  it('never leave the move table, in any order', () => {
    const steps = fc.array(fc.constantFrom('claim', 'discard', ...named.map(([move]) => move)), {
      minLength: 20,
      maxLength: 120,
    })
    fc.assert(
      fc.property(steps, (moves) => {
        let letter = aLetter()
        const first = letter.history[0]
        let entries = 1
        for (const move of moves) {
          const next = step(letter, move)
          if (!next) continue
          expect(next.version).toBe(letter.version + 1)
          expect(next.epoch).toBeGreaterThanOrEqual(letter.epoch)
          entries += move === 'claim' ? (letter.lease ? 1 : 0) : 1
          letter = next
          sound(letter)
          expect(letter.history[0]).toBe(first)
          expect(letter.history.length).toBeLessThanOrEqual(50)
          expect(letter.history.length + letter.historyOmitted).toBe(entries)
        }
      }),
      { numRuns: atDepth(75, 200) },
    )
  })

  it('guard a worker by its lease and a person by the version', () => {
    const letter = aLetter({ state: 'retrying', version: 7, epoch: 4 })
    expect(resolve(letter, worker).guard).toEqual({ epoch: 4, worker: letter.lease!.worker })
    expect(resolve(letter, { ...person }).guard).toEqual({ version: 7 })
  })
})

/** Undefined if the move is illegal in this state. */
function step(
  letter: DeadLetter,
  move: keyof typeof changes | 'claim' | 'discard',
): DeadLetter | undefined {
  if (move === 'claim')
    return isLegal('claim', letter.state)
      ? claim(letter, { worker: 'w', atMs, leaseMs: 1000 })
      : undefined
  const [kind, make] =
    move === 'discard'
      ? (['review', (it: DeadLetter) => review(it, person, 'discard')] as const)
      : ([move, changes[move]] as const)
  if (!isLegal(kind, letter.state)) {
    expect(() => make(letter)).toThrow(TypeError)
    return undefined
  }
  return withChange(letter, make(letter))
}

/** What is true of a letter in each state, and that it is still a letter. */
function sound(letter: DeadLetter): void {
  const resting = ['resolved', 'exhausted', 'parked', 'archived'].includes(letter.state)
  expect(letter.lease !== undefined).toBe(letter.state === 'retrying')
  expect(letter.settledAt !== undefined).toBe(resting)
  expect(letter.archivedFrom !== undefined).toBe(letter.state === 'archived')
  if (letter.state === 'pending') expect(letter.retryAt).toBeDefined()
  if (letter.state === 'parked') expect(letter.reason).toBeDefined()
  expect(letterFromJson(JSON.parse(JSON.stringify(letterToJson(letter))))).toEqual({
    ok: true,
    letter,
  })
}

describe('claim', () => {
  it('leases the letter and counts the retry in one step', () => {
    const letter = aLetter({ retries: 1, epoch: 3, version: 9 })
    const claimed = claim(letter, { worker: 'w1', atMs, leaseMs: 30_000 })
    expect(claimed).toMatchObject({
      state: 'retrying',
      retries: 2,
      epoch: 4,
      version: 10,
      updatedAt: at,
      lease: { worker: 'w1', epoch: 4, expiresAt: '2026-01-02T00:00:30.000Z' },
    })
    expect(claimed).not.toHaveProperty('retryAt')
    expect(claimed.history).toEqual(letter.history)
    expect(letter.state).toBe('pending')
  })

  it('counts every claim, so that a letter that crashes its workers is counted', () => {
    let letter = aLetter()
    for (let run = 1; run <= 5; run++) {
      letter = claim(letter, { worker: `w${run}`, atMs: atMs + run, leaseMs: 1 })
      expect(letter).toMatchObject({ retries: run, epoch: run })
    }
    expect(letter.history.map(({ actor }) => actor)).toEqual(['capture', 'w1', 'w2', 'w3', 'w4'])
  })

  it('records whose lease expired', () => {
    const lost = claim(aLetter(), { worker: 'w1', atMs, leaseMs: 1 })
    const taken = claim(lost, { worker: 'w2', atMs: atMs + 5, leaseMs: 1 })
    expect(taken.history.at(-1)).toEqual({
      at: toTimestamp(atMs + 5),
      actor: 'w1',
      action: 'claim',
      from: 'retrying',
      to: 'retrying',
      epoch: 1,
      note: 'the lease of w1 lapsed at 2026-01-02T00:00:00.001Z',
    })
  })
})

describe('release', () => {
  it('subtracts the retry that the claim counted', () => {
    const claimed = claim(aLetter({ retries: 2 }), { worker: 'w', atMs, leaseMs: 1 })
    expect(withChange(claimed, release(claimed, worker))).toMatchObject({ retries: 2, retryAt: at })
    expect(release(aLetter({ state: 'retrying', retries: 0 }), worker).set.retries).toBe(0)
  })
})

describe('defer', () => {
  it('subtracts the retry, records the failure, and waits', () => {
    const claimed = claim(aLetter({ retries: 2 }), { worker: 'w', atMs, leaseMs: 1 })
    const retryAt = '2026-02-01T00:00:00.000Z'
    const change = defer(claimed, worker, { judged, retryAt, backoffMs: 7 })
    expect(withChange(claimed, change)).toMatchObject({
      state: 'pending',
      retries: 2,
      retryAt,
      backoffMs: 7,
      failure: judged.failure,
    })
    expect(change).toMatchObject({
      action: 'release',
      entry: { failure: { name: judged.failure.name } },
    })
  })
})

describe('reschedule', () => {
  it('stores the newer failure and keeps the first', () => {
    const letter = aLetter({ state: 'retrying' })
    const next = withChange(letter, changes.reschedule(letter))
    expect(next).toMatchObject({ ...judged, state: 'pending', backoffMs: 1000 })
    expect(next.firstFailure).toEqual(letter.firstFailure)
    expect(next.history.at(-1)?.failure).toEqual({
      name: 'TimeoutError',
      message: 'too slow',
      category: 'timeout',
    })
  })

  it('stores only the beginning of a long message in the history', () => {
    const failure = { ...judged.failure, message: 'm'.repeat(9000) }
    const letter = aLetter({ state: 'retrying' })
    const change = exhaust(letter, worker, { judged: { ...judged, failure } })
    expect(change.entry.failure?.message).toHaveLength(500)
    expect(change.set.failure?.message).toHaveLength(9000)
  })
})

describe('retry', () => {
  it('gives a settled letter a fresh budget, and keeps that of a pending one', () => {
    const spent = aLetter({ state: 'exhausted', retries: 3 })
    expect(withChange(spent, retry(spent, person))).toMatchObject({ retries: 0, retryAt: at })
    const waiting = aLetter({ retries: 2 })
    expect(withChange(waiting, retry(waiting, person))).toMatchObject({ retries: 2, retryAt: at })
  })
})

describe('a pending review', () => {
  it.each([
    ['retry', retry],
    ['resolve', resolve],
  ] as const)('is cleared by %s', (_name, move) => {
    const parked = aLetter({ state: 'parked' })
    expect(withChange(parked, move(parked, person))).not.toHaveProperty('review')
  })

  it('is kept if it was decided', () => {
    const parked = aLetter({ state: 'parked' })
    const decided = withChange(parked, review(parked, person, 'requeue'))
    expect(withChange(decided, resolve(decided, person)).review).toEqual(decided.review)
  })
})

describe('note', () => {
  it.each(states)('changes nothing but the history of a letter that is %s', (state) => {
    const letter = aLetter({ state })
    const { history, version, updatedAt, ...same } = withChange(letter, note(letter, person))
    expect({ version, updatedAt }).toEqual({ version: letter.version + 1, updatedAt: at })
    expect(letter).toMatchObject(same)
    expect(history.slice(0, -1)).toEqual(letter.history)
    expect(history.at(-1)).toEqual({
      at,
      actor: 'ada',
      action: 'note',
      from: state,
      to: state,
      note: 'because',
    })
  })
})

describe('wake', () => {
  it('makes a parked letter due with its remaining retries, without a review', () => {
    const parked = aLetter({ state: 'parked', reason: 'no-handler', retries: 2 })
    const woken = withChange(parked, wake(parked, person))
    expect(woken).toMatchObject({ state: 'pending', retries: 2, retryAt: at })
    for (const gone of ['reason', 'settledAt', 'review']) expect(woken).not.toHaveProperty(gone)
  })
})

describe('review', () => {
  it.each([
    ['requeue', 'pending'],
    ['resolve', 'resolved'],
    ['discard', 'archived'],
  ] as const)('%s leads to %s and is recorded', (decision, state) => {
    const letter = aLetter({ state: 'parked' })
    const next = withChange(letter, review(letter, person, decision))
    expect(next).toMatchObject({
      state,
      review: { decision, decidedBy: 'ada', decidedAt: at, note: 'because' },
    })
    expect(next.review?.neededSince).toBe(letter.review?.neededSince)
  })
})

describe('restore', () => {
  it.each(['pending', 'resolved', 'exhausted', 'parked'] as const)(
    'returns to the state before archive: %s',
    (state) => {
      const letter = aLetter({ state })
      const archivedLetter = withChange(letter, archive(letter, person))
      expect(archivedLetter).toMatchObject({ state: 'archived', archivedFrom: state })
      const back = withChange(archivedLetter, restore(archivedLetter, person))
      expect(back.state).toBe(state)
      expect(back).not.toHaveProperty('archivedFrom')
    },
  )

  it('makes a pending letter due again, not before its time', () => {
    const later = '2027-01-01T00:00:00.000Z'
    const archived = aLetter({ state: 'archived', archivedFrom: 'pending' })
    expect(restore(archived, person).set.retryAt).toBe(at)
    expect(restore({ ...archived, retryAt: later }, person).set.retryAt).toBe(later)
  })
})

describe('withChange', () => {
  it('sets values, removes null fields, and does not change its argument', () => {
    const letter = aLetter({ state: 'parked', version: 3 })
    const before = structuredClone(letter)
    const change = retry(letter, person)
    const next = withChange(letter, change)
    expect(next).toMatchObject({ state: 'pending', version: 4, updatedAt: at })
    expect(next).not.toHaveProperty('reason')
    expect(next).not.toHaveProperty('settledAt')
    expect(next.history).toEqual([...letter.history, change.entry])
    expect(letter).toEqual(before)
  })

  it('applies an edit without changing the state', () => {
    const letter = aLetter({ state: 'exhausted' })
    const payload = { ...letter.payload, version: 2 }
    expect(withChange(letter, edit(letter, person, { payload, priority: 'high' }))).toMatchObject({
      state: 'exhausted',
      payload: { version: 2 },
      priority: 'high',
    })
  })
})

describe('occur', () => {
  it('counts the occurrence and takes only the newer failure', () => {
    const letter = aLetter({ retries: 2 })
    const newer = aLetter({ ...judged, priority: 'critical' })
    const next = occur(letter, newer)
    expect(next).toMatchObject({
      ...judged,
      id: letter.id,
      occurrences: 2,
      retries: 2,
      priority: 'medium',
    })
    expect(next.version).toBe(letter.version + 1)
    expect(next.history.at(-1)).toMatchObject({
      action: 'occur',
      failure: { name: 'TimeoutError' },
    })
  })
})

describe('appendHistory', () => {
  it('keeps the first entry and the newest, and counts the omitted ones', () => {
    const entry = (note: string): HistoryEntry => ({
      at,
      actor: 'a',
      action: 'retry',
      from: null,
      to: null,
      note,
    })
    let kept = { history: [entry('0')], historyOmitted: 0 }
    for (let index = 1; index <= 60; index++)
      kept = appendHistory(kept.history, kept.historyOmitted, entry(String(index)))
    expect(kept.historyOmitted).toBe(11)
    expect(kept.history.map(({ note }) => note)).toEqual([
      '0',
      ...Array.from({ length: 49 }, (_, index) => String(index + 12)),
    ])
  })
})

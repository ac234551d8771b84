import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { bulkMovesFor, type BulkMoveName } from '../../src/letter/bulk-moves.ts'
import { priorities, type DeadLetter, type Failure } from '../../src/letter/letter.ts'
import { isLegal } from '../../src/letter/move-table.ts'
import * as moves from '../../src/letter/moves.ts'
import type { LetterFilter } from '../../src/letter/query.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { ApplyResult, Capacity, Store, StoredLetter } from '../../src/store.ts'
import { aLetter, type FakeClock } from '../../src/testing/index.ts'
import { compare } from './compare.ts'
import type { StoreModel } from './model.ts'
import { stepsOf, type Steps } from './step.ts'

/** The real store, and all data that a slow or stale client could still hold. */
export interface Real {
  store: Store
  clock: FakeClock
  reopen?: () => Promise<Store>
  /** All claimed letters, never removed: stale ones are used again. */
  claimed: DeadLetter[]
  /** Letters as they were read. */
  seen: DeadLetter[]
  steps: number
  /** Cases that the run covered. */
  reached: Set<string>
}

/** Applies the step to both sides, and sometimes compares everything. */
const steps = stepsOf<StoreModel, Real>((act) => async (model, real) => {
  model.nowMs = real.clock.now()
  await act(model, real)
  real.steps += 1
  if (real.steps % 5 === 0) await compare(model, real.store)
})

const pick = <T>(from: readonly T[], n: number): T | undefined => from[n % Math.max(1, from.length)]
const nat = fc.nat(1000)

/** Odd numbers of milliseconds, so that no two priorities get equal scores. */
const delays = fc.constantFrom(-3_000_001, -1_000_003, -101, 0, 53, 107, 211, 1009)

const fewIds = 8

const letterPicks = fc.record({
  place: fc.nat(255),
  queue: fc.constantFrom('a', 'b'),
  priority: fc.constantFrom(...priorities),
  delayMs: delays,
  state: fc.constantFrom('pending', 'pending', 'pending', 'parked', 'resolved'),
  dedupeKey: fc.option(fc.constantFrom('k1', 'k2', 'k3'), { nil: undefined }),
  lane: fc.option(fc.constantFrom('l1', 'l2'), { nil: undefined }),
  dependsOn: fc.option(fc.array(nat, { maxLength: 2 }), { nil: undefined, freq: 3 }),
  tags: fc.subarray(['t1', 't2']),
  again: fc.boolean(),
  capacity: fc.option(
    fc.record({
      maxItems: fc.integer({ min: 3, max: 9 }),
      overflow: fc.constantFrom<Capacity['overflow']>('reject', 'evict-resolved'),
    }),
    { nil: undefined, freq: 3 },
  ),
})

const add = steps('add', letterPicks, async (picks, model, real) => {
  const letter = letterOf(picks, model, real)
  const expected = model.add(structuredClone(letter), picks.capacity)
  assert.deepEqual(await real.store.add([letter], picks.capacity), [expected])
  real.reached.add(expected.kind === 'duplicate' ? `duplicate by ${expected.by}` : expected.kind)
  if (expected.kind === 'added' && expected.evicted) real.reached.add('evicted')
  see(model, real, expected.kind === 'duplicate' ? expected.of : letter.id)
})

/** Copies a letter from another store: a new one, or another version of an existing one. */
const keep = steps(
  'keep',
  fc.record({
    picks: letterPicks,
    token: nat,
    older: fc.integer({ min: -2, max: 2 }),
    known: fc.boolean(),
  }),
  async ({ picks, token, older, known }, model, real) => {
    const made = letterOf(picks, model, real)
    const seen = known ? pick(real.seen, token) : undefined
    const letter: DeadLetter = {
      ...made,
      ...(seen ? { id: seen.id, version: Math.max(1, seen.version - older) } : {}),
    }
    // No letter depends on itself: capture refuses it.
    const waitsFor = letter.dependsOn?.filter((id, n) => id !== letter.id && (token >> n) % 2 === 0)
    const arriving: StoredLetter = { letter, ...(waitsFor ? { waitsFor } : {}) }
    const before = model.get(letter.id)
    const expected = model.keep(structuredClone(arriving))
    assert.deepEqual(await real.store.keep([arriving]), [expected])
    real.reached.add(`kept ${before ? 'over another' : 'as new'}: ${expected}`)
    see(model, real, letter.id)
  },
)

/** Ids are random, so that letters have any order of age; some are used twice. */
function letterOf(
  picks: typeof letterPicks extends fc.Arbitrary<infer T> ? T : never,
  model: StoreModel,
  real: Real,
): DeadLetter {
  const { place, delayMs, state, dedupeKey, lane, dependsOn, queue, priority, tags } = picks
  // Few different ids for repeated letters, so that repeats happen.
  const drawn = picks.again ? place % fewIds : place
  const number = (drawn * 2 ** 16 + (picks.again ? 0 : real.steps)).toString(16).padStart(12, '0')
  const at = toTimestamp(model.nowMs)
  const failure: Failure = { name: 'Error', message: `step ${real.steps}`, causes: [], at }
  const known = model.letters()
  return aLetter({
    id: `00000000-0000-7000-8000-${number}`,
    queue,
    priority,
    state,
    tags,
    failure,
    fingerprint: `f${real.steps % 3}`,
    deadLetteredAt: at,
    updatedAt: at,
    ...(state === 'pending' ? { retryAt: toTimestamp(model.nowMs + delayMs) } : { settledAt: at }),
    ...(dedupeKey === undefined ? {} : { dedupeKey }),
    ...(lane === undefined ? {} : { lane }),
    ...(dependsOn ? { dependsOn: dependsOn.map((n) => pick(known, n)?.id ?? 'nobody') } : {}),
  })
}

const claimPicks = fc.record({
  worker: fc.constantFrom('w1', 'w2'),
  limit: fc.integer({ min: 0, max: 4 }),
  leaseMs: fc.constantFrom(100, 300),
  queues: fc.constantFrom(undefined, undefined, ['a'], ['b', 'c']),
  except: fc.constantFrom(undefined, undefined, ['a']),
})

const claim = steps('claim', claimPicks, async ({ queues, except, ...rest }, model, real) => {
  const request = { ...rest, ...(queues ? { queues } : {}), ...(except ? { except } : {}) }
  const expected = model.claim(request)
  const { letters, nextDueAt } = await real.store.claim(request)
  assert.deepEqual(letters, expected)
  const next = expected.length < request.limit ? model.nextDueAt(request) : [undefined]
  assert.ok(next.includes(nextDueAt), `nextDueAt ${nextDueAt} is one of ${next.join()}`)
  for (const letter of expected) {
    real.claimed.push(letter)
    real.seen.push(letter)
    if (real.claimed.some((old) => old.id === letter.id && old.epoch < letter.epoch))
      real.reached.add('claimed again')
    if (letter.history.at(-1)?.note) real.reached.add('taken over')
  }
})

const renew = steps(
  'renew',
  fc.record({ token: nat, leaseMs: fc.constantFrom(10, 500) }),
  async ({ token, leaseMs }, model, real) => {
    const held = pick(real.claimed, token)
    if (!held) return
    const ref = { id: held.id, epoch: held.epoch }
    const expected = model.renew(ref, leaseMs)
    assert.deepEqual(await real.store.renew([ref], leaseMs), [expected])
    real.reached.add(expected ? 'renewed' : 'renewed too late')
  },
)

const settlePicks = fc.record({
  token: nat,
  move: fc.constantFrom('resolve', 'reschedule', 'exhaust', 'park', 'release', 'defer'),
  delayMs: delays,
})

/** A worker settles with a lease that may have expired. */
const settle = steps('settle', settlePicks, async ({ token, move, delayMs }, model, real) => {
  const held = pick(real.claimed, token)
  if (!held) return
  const at = toTimestamp(model.nowMs)
  const by: moves.Mover = { at, actor: 'w1', guard: 'epoch' }
  const judged: moves.Judged = {
    failure: { name: 'TimeoutError', message: 'late', causes: [], at },
    category: 'timeout',
    severity: 'high',
    recoverability: 'recoverable',
    fingerprint: 'f9',
  }
  const retryAt = toTimestamp(model.nowMs + delayMs)
  const change = {
    resolve: () => moves.resolve(held, by),
    reschedule: () => moves.reschedule(held, by, { judged, retryAt, backoffMs: 53 }),
    exhaust: () => moves.exhaust(held, by, { judged }),
    park: () => moves.park(held, by, { reason: 'operator', judged }),
    release: () => moves.release(held, by),
    defer: () => moves.defer(held, by, { judged, retryAt, backoffMs: 59 }),
  }[move]()
  await apply('worker', change, model, real)
})

const decidePicks = fc.record({
  token: nat,
  move: fc.constantFrom(
    'resolve',
    'retry',
    'wake',
    'park',
    'archive',
    'restore',
    'edit',
    'review',
    'note',
  ),
  priority: fc.constantFrom(...priorities),
})

/** A person acts on a version that may be outdated. */
const decide = steps('decide', decidePicks, async ({ token, move, priority }, model, real) => {
  const looked = pick(
    real.seen.filter((letter) => isLegal(move, letter.state) && isDistinguishable(letter, model)),
    token,
  )
  if (!looked) return
  const by: moves.Mover = { at: toTimestamp(model.nowMs), actor: 'ada', guard: 'version' }
  const change = {
    resolve: () => moves.resolve(looked, by),
    retry: () => moves.retry(looked, by),
    wake: () => moves.wake(looked, by),
    park: () => moves.park(looked, by, { reason: 'operator' }),
    archive: () => moves.archive(looked, by),
    restore: () => moves.restore(looked, by),
    edit: () => moves.edit(looked, by, { priority, tags: [`t${token % 4}`] }),
    review: () => moves.review(looked, by, 'requeue'),
    note: () => moves.note(looked, { ...by, note: `note ${token}` }),
  }[move]()
  await apply('person', change, model, real)
})

const decideAllPicks = fc.record({
  tokens: fc.array(nat, { minLength: 1, maxLength: 6 }),
  move: fc.constantFrom<BulkMoveName>('retry', 'resolve', 'archive', 'park'),
})

/** A person makes one move on several letters, in versions that may be outdated or repeated. */
const decideAll = steps('decideAll', decideAllPicks, async ({ tokens, move }, model, real) => {
  const letters = tokens.flatMap((token) => pick(real.seen, token) ?? [])
  const bulkMoves = bulkMovesFor(move, { at: toTimestamp(model.nowMs), actor: 'ada' })
  const expected = letters.map(({ id, version }, n): ApplyResult => {
    const state = model.get(id)?.state
    const isFirst = letters.findIndex((letter) => letter.id === id) === n
    const made = state && isFirst ? bulkMoves[state] : undefined
    if (!made) return state ? 'conflict' : 'missing'
    return model.apply(structuredClone({ id, guard: { version }, ...made }))
  })
  assert.deepEqual(await real.store.applyAll(letters, bulkMoves), expected)
  for (const result of expected) real.reached.add(`bulk ${result}`)
  for (const { id } of letters) see(model, real, id)
})

/** Whether a guard can distinguish this letter from a later one with the same id and version. */
function isDistinguishable({ id, version, state }: DeadLetter, model: StoreModel): boolean {
  const now = model.get(id)
  return now?.version !== version || now.state === state
}

async function apply(
  who: string,
  change: moves.Change,
  model: StoreModel,
  real: Real,
): Promise<void> {
  const expected = model.apply(structuredClone(change))
  assert.deepEqual(await real.store.apply([change]), [expected])
  real.reached.add(`${who} ${expected}`)
  see(model, real, change.id)
}

const advance = steps(
  'advance',
  fc.constantFrom(1, 60, 110, 400, 900_001),
  async (ms, _model, real) => {
    await real.clock.advance(ms)
  },
)

const removals: fc.Arbitrary<LetterFilter & { one?: number }> = fc.oneof(
  fc.record({ one: nat }),
  fc.constantFrom<LetterFilter>(
    { queue: 'b', state: ['resolved', 'archived'] },
    { state: 'exhausted' },
    { tag: 't1', queue: 'a' },
  ),
)

const remove = steps('remove', removals, async ({ one, ...filter }, model, real) => {
  const id = one === undefined ? undefined : pick(model.letters(), one)?.id
  const which: LetterFilter = one === undefined ? filter : { ids: id === undefined ? [] : [id] }
  const expected = model.remove(which)
  assert.equal(await real.store.remove(which), expected)
  if (expected > 0) real.reached.add('removed')
})

const reopen = steps('reopen', fc.constant(0), async (_, _model, real) => {
  if (real.reopen) real.store = await real.reopen()
})

export const commands: Steps<StoreModel, Real>[] = [
  add,
  add,
  add,
  keep,
  claim,
  claim,
  renew,
  settle,
  settle,
  decide,
  decide,
  decideAll,
  advance,
  advance,
  remove,
  reopen,
]

/** Cases that a set of runs must cover. */
export const landmarks = [
  'added',
  'full',
  'evicted',
  'duplicate by id',
  'duplicate by dedupeKey',
  'kept as new: written',
  'kept over another: written',
  'kept over another: conflict',
  'claimed again',
  'taken over',
  'renewed',
  'renewed too late',
  'worker written',
  'worker conflict',
  'worker missing',
  'person written',
  'person conflict',
  'person missing',
  'bulk written',
  'bulk conflict',
  'bulk missing',
  'removed',
]

function see(model: StoreModel, real: Real, id: string): void {
  const letter = model.get(id)
  if (letter) real.seen.push(letter)
}

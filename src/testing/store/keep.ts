import assert from 'node:assert/strict'
import { states, type DeadLetter, type Payload } from '../../letter/letter.ts'
import { edit, resolve, withChange } from '../../letter/moves.ts'
import type { Store, StoredLetter, Total } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, needsDurable, needsWakeups, reopen } from './check.ts'
import { mixedLetters } from './mixed.ts'
import {
  ago,
  ahead,
  claim,
  claimOne,
  ids,
  longLeaseMs,
  person,
  expectSameLetter,
  getLetter,
  worker,
} from './steps.ts'

const check = checkOn('keep')

const missingId = '00000000-0000-7000-8000-000000000000'
const at = '2026-01-02T00:00:00.000Z'

const textPayload = (text: string, version: number): Payload => {
  const bytes = new TextEncoder().encode(text)
  return { bytes, contentType: 'text/plain', size: bytes.length, version }
}

/** A letter with a long history: every field that moves and claims change differs from capture. */
function anOldLetter(overrides: Partial<DeadLetter> = {}): DeadLetter {
  const [first] = aLetter().history
  const later = Array.from({ length: 49 }, (_, n) => ({
    at,
    actor: `worker-${n}`,
    action: 'reschedule' as const,
    from: 'retrying' as const,
    to: 'pending' as const,
    epoch: n,
  }))
  return aLetter({
    version: 90,
    epoch: 44,
    occurrences: 7,
    retries: 12,
    maxRetries: 15,
    maxRetriesChosen: true,
    budgetSince: at,
    deferredSince: at,
    replays: 2,
    updatedAt: at,
    tags: ['red', 'blue'],
    headers: { a: 'b' },
    failure: { name: 'TimeoutError', message: 'late', causes: [], at },
    history: [first!, ...later],
    historyOmitted: 17,
    ...(overrides.state === 'retrying'
      ? { lease: { worker: 'worker-49', epoch: 44, expiresAt: at } }
      : {}),
    ...overrides,
  })
}

/** Equal letters, payloads and dependencies. Dependencies may be in any order. */
function expectSame(actual: StoredLetter | undefined, expected: StoredLetter): void {
  assert.ok(actual, `letter ${expected.letter.id} is not stored`)
  expectSameLetter(actual.letter, expected.letter)
  assert.deepEqual(plain(actual.original), plain(expected.original))
  assert.deepEqual(
    (actual.waitsFor ?? []).toSorted(),
    (expected.waitsFor ?? []).toSorted(),
    `dependencies of letter ${expected.letter.id}`,
  )
}

function plain(payload: Payload | undefined): unknown {
  return payload && { ...payload, bytes: Uint8Array.from(payload.bytes) }
}

async function expectAllSame(store: Store, expected: readonly StoredLetter[]): Promise<void> {
  const actual = await store.stored(expected.map(({ letter }) => letter.id))
  assert.equal(actual.length, expected.length)
  for (const [n, one] of expected.entries()) expectSame(actual[n], one)
}

export const keepChecks = [
  check('stores letters of every state unchanged', async ({ store }) => {
    const letters = [...mixedLetters(), ...states.map((state) => anOldLetter({ state }))]
    const expected = letters.map((letter): StoredLetter =>
      letter.dependsOn?.length ? { letter, waitsFor: letter.dependsOn } : { letter },
    )
    assert.deepEqual(
      await store.keep(expected),
      letters.map(() => 'written'),
    )
    await expectAllSame(store, expected)
    const inOrder = letters.map((letter) => letter.id).toSorted()
    const page = await store.find({ state: [...states], order: 'oldest', limit: 1000 })
    assert.deepEqual(ids(page.items), inOrder)
    assert.deepEqual(await store.keep([]), [])
    assert.deepEqual(await store.stored([missingId]), [])
  }),

  check('replaces exactly the version that the caller names', async ({ store }) => {
    const letter = anOldLetter()
    const next = { ...letter, version: letter.version + 1, priority: 'low' as const }
    const replaces = letter.version
    assert.deepEqual(await store.keep([{ letter: next, replaces }]), ['conflict'])
    assert.deepEqual(await store.get([letter.id]), [])
    await store.keep([{ letter }])
    const others = [replaces - 1, replaces + 1].map((other) => ({ letter: next, replaces: other }))
    assert.deepEqual(await store.keep(others), ['conflict', 'conflict'])
    expectSameLetter(await getLetter(store, letter.id), letter)
    assert.deepEqual(await store.keep([{ letter: next, replaces }]), ['written'])
    expectSameLetter(await getLetter(store, letter.id), next)
    assert.deepEqual(await store.keep([{ letter: next, replaces }]), ['conflict'])
  }),

  check('counts stored letters in tallies, but not in totals', async ({ store }) => {
    const letters = mixedLetters()
    await store.keep(letters.map((letter) => ({ letter })))
    const expected = new Map<string, number>()
    for (const { state } of letters) expected.set(state, (expected.get(state) ?? 0) + 1)
    assert.deepEqual(await store.tally('state', { state: [...states] }), expected)
    const reds = letters.filter(({ tags, state }) => tags.includes('red') && state !== 'archived')
    assert.equal((await store.tally('tag')).get('red'), reds.length)
    assert.deepEqual(await store.totals(), [])
  }),

  check('stores both payloads of an edited letter', async (bench) => {
    const { store } = bench
    const letter = anOldLetter({ payload: textPayload('third', 3), state: 'parked' })
    const original = textPayload('first', 1)
    await store.keep([{ letter, original }])
    await expectAllSame(store, [{ letter, original }])
    assert.deepEqual(plain(await store.original(letter.id)), plain(original))
    const change = edit(letter, person(bench), { payload: textPayload('fourth', 4) })
    assert.deepEqual(await store.apply([change]), ['written'])
    await expectAllSame(store, [{ letter: withChange(letter, change), original }])
  }),

  check('returns the captured payload of a letter that was edited in this store', async (bench) => {
    const { store } = bench
    const [edited, other] = [aLetter({ payload: textPayload('first', 1) }), aLetter()]
    await store.add([edited, other])
    const change = edit(edited, person(bench), { payload: textPayload('second', 2) })
    await store.apply([change, edit(other, person(bench), { tags: ['t'] })])
    const [one, two] = await store.stored([edited.id, other.id])
    expectSame(one, { letter: withChange(edited, change), original: edited.payload })
    assert.equal(two!.original, undefined)
  }),

  check('ignores dedupe keys', async (bench) => {
    const { store } = bench
    const letters = [1, 2].map(() => aLetter({ dedupeKey: 'k' }))
    assert.deepEqual(await store.keep(letters.map((letter) => ({ letter }))), [
      'written',
      'written',
    ])
    await expectAllSame(
      store,
      letters.map((letter) => ({ letter })),
    )
    const [again] = await store.add([aLetter({ dedupeKey: 'k' })])
    assert.deepEqual(again, {
      kind: 'duplicate',
      of: letters[0]!.id,
      by: 'dedupeKey',
      occurrences: 2,
    })
  }),

  check(
    'keeps a lease: its worker can settle, and it is claimed again after it expires',
    async (bench) => {
      const { store } = bench
      const leased = (worker: string, expiresAt: string): DeadLetter =>
        anOldLetter({ state: 'retrying', lease: { worker, epoch: 44, expiresAt } })
      const valid = leased('live-worker', ahead(bench, longLeaseMs))
      const lapsed = leased('dead-worker', ago(bench, 1000))
      await store.keep([{ letter: valid }, { letter: lapsed }])
      const claimed = await claimOne(bench)
      assert.deepEqual([claimed.id, claimed.epoch, claimed.version], [lapsed.id, 45, 91])
      const liveWorker = worker(bench, 'live-worker')
      assert.deepEqual(
        await store.apply([resolve(lapsed, liveWorker), resolve(valid, liveWorker)]),
        ['conflict', 'written'],
      )
    },
  ),

  check('replaces an older version completely', async (bench) => {
    const { store } = bench
    const old = anOldLetter({ payload: textPayload('two', 2), lane: 'l', dependsOn: [missingId] })
    await store.keep([{ letter: old, original: textPayload('one', 1), waitsFor: [missingId] }])
    const next = anOldLetter({
      id: old.id,
      version: 91,
      queue: 'mail',
      state: 'parked',
      tags: ['green'],
      payload: textPayload('new', 1),
      history: old.history.slice(0, 3),
      historyOmitted: 0,
    })
    assert.deepEqual(await store.keep([{ letter: next }]), ['written'])
    await expectAllSame(store, [{ letter: next }])
    assert.deepEqual(plain(await store.original(old.id)), plain(next.payload))
    assert.deepEqual(await store.tally('tag'), new Map([['green', 1]]))
    assert.deepEqual(await store.tally('queue'), new Map([['mail', 1]]))
    assert.deepEqual(await store.totals(), [])
    assert.deepEqual(await claim(bench), [])
  }),

  check('does not replace a letter of the same or a newer version', async ({ store }) => {
    const letter = anOldLetter()
    await store.keep([{ letter }])
    const others = [90, 12].map((version) => ({
      letter: anOldLetter({ id: letter.id, version, queue: 'mail' }),
    }))
    assert.deepEqual(await store.keep(others), ['conflict', 'conflict'])
    await expectAllSame(store, [{ letter }])
    assert.deepEqual(await store.tally('queue'), new Map([['orders', 1]]))
  }),

  check('waits only for the ids in waitsFor', async (bench) => {
    const { store } = bench
    const root = aLetter({ state: 'parked' })
    const half = aLetter({ dependsOn: [missingId, root.id] })
    const free = aLetter({ dependsOn: [missingId] })
    await store.keep([{ letter: half, waitsFor: [root.id] }, { letter: free }, { letter: root }])
    await expectAllSame(store, [{ letter: half, waitsFor: [root.id] }, { letter: free }])
    assert.equal((await claimOne(bench)).id, free.id)
    await store.apply([resolve(root, person(bench))])
    assert.deepEqual((await store.stored([half.id]))[0]!.waitsFor ?? [], [])
    assert.equal((await claimOne(bench)).id, half.id)
  }),

  check('releases dependents of a letter that is stored as resolved', async (bench) => {
    const { store } = bench
    const root = aLetter({ state: 'parked' })
    const [early, late] = [1, 2].map(() => aLetter({ dependsOn: [root.id] }))
    const waitsFor = [root.id]
    await store.keep([{ letter: root }, { letter: early!, waitsFor }])
    assert.deepEqual(await claim(bench), [])
    const resolved = withChange(root, resolve(root, person(bench)))
    await store.keep([{ letter: resolved }, { letter: late!, waitsFor }])
    assert.deepEqual(ids(await claim(bench)), [early!.id, late!.id])
  }),

  check('keeps the order of a lane, whatever is written first', async (bench) => {
    const { store } = bench
    const [first, second] = [1, 2].map(() => aLetter({ lane: 'l' }))
    await store.keep([{ letter: second! }])
    await store.keep([{ letter: first! }])
    const head = await claimOne(bench)
    assert.equal(head.id, first!.id)
    await store.apply([resolve(head, worker(bench))])
    assert.equal((await claimOne(bench)).id, second!.id)
  }),

  check('sets totals, and continues counting from them', async ({ store }) => {
    const total = (overrides: Partial<Total>): Total => ({
      action: 'capture',
      queue: 'orders',
      priority: 'medium',
      count: 40,
      retries: 9,
      maxRetries: 5,
      backoffMs: 1500.5,
      ...overrides,
    })
    await store.add([aLetter({ retries: 8 })])
    const others = [total({ action: 'remove' }), total({ queue: "it's", priority: 'low' })]
    await store.keepTotals([total({ count: 1 }), ...others])
    await store.keepTotals([total({})])
    assert.deepEqual(sortTotals(await store.totals()), sortTotals([total({}), ...others]))
    await store.add([aLetter({ retries: 7, backoffMs: 0.5 })])
    const grown = total({ count: 41, retries: 16, maxRetries: 7, backoffMs: 1501 })
    assert.deepEqual(sortTotals(await store.totals()), sortTotals([grown, ...others]))
    await store.keepTotals([])
  }),

  check('stores many letters in one call, and returns results in order', async ({ store }) => {
    const letters = Array.from({ length: 600 }, () => ({ letter: aLetter() }))
    await store.keep([letters[300]!])
    const expected = letters.map((_, n) => (n === 300 ? 'conflict' : 'written'))
    assert.deepEqual(await store.keep(letters), expected)
    const reversed = letters.map(({ letter }) => letter.id).toReversed()
    const got = await store.stored(reversed)
    assert.deepEqual(ids(got.map(({ letter }) => letter)), reversed)
  }),

  check('is not affected by later changes to the given objects', async ({ store }) => {
    const letter = aLetter({ metadata: { a: 1 } })
    await store.keep([{ letter }])
    letter.metadata['a'] = 2
    const [got] = await store.stored([letter.id])
    got!.letter.metadata['a'] = 3
    assert.deepEqual((await getLetter(store, letter.id)).metadata, { a: 1 })
  }),

  check(
    'keeps letters across a restart',
    async (bench) => {
      const letter = anOldLetter({ payload: textPayload('two', 2), dependsOn: [missingId] })
      const expected = { letter, original: textPayload('one', 1), waitsFor: [missingId] }
      await bench.store.keep([expected])
      await expectAllSame(await reopen(bench), [expected])
    },
    needsDurable,
  ),

  check(
    'wakes a watcher when a due letter is stored',
    async ({ store }) => {
      const woken = new Promise<void>((wake) => void store.watch(wake))
      await store.keep([{ letter: aLetter() }])
      await woken
    },
    needsWakeups,
  ),
]

function sortTotals(totals: readonly Total[]): Total[] {
  const key = ({ action, queue, priority }: Total): string => `${action} ${queue} ${priority}`
  return totals.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}

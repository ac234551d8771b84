import assert from 'node:assert/strict'
import { bulkMovesFor, type BulkMoveName } from '../../letter/bulk-moves.ts'
import { states, type DeadLetter } from '../../letter/letter.ts'
import {
  archive,
  edit,
  park,
  resolve,
  retry,
  withChange,
  type BulkMoves,
  type Change,
  type Mover,
} from '../../letter/moves.ts'
import type { ApplyResult, LetterVersion, Store, Total } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, needsShared, needsWakeups, openAnother, type StoreBench } from './check.ts'
import { hostileNames, mixedLetters } from './mixed.ts'
import {
  claim,
  claimOne,
  expectSameLetter,
  getLetter,
  ids,
  longLeaseMs,
  person,
  totalOf,
} from './steps.ts'
import { expectExact } from './tally.ts'
import { expectWakeup } from './watch.ts'

const check = checkOn('applyAll')

type MakeChange = (letter: DeadLetter, by: Mover) => Change

/** The change of one letter that each bulk move is made of. */
const changes: { [N in BulkMoveName]: MakeChange } = {
  retry: (letter, by) => retry(letter, by),
  resolve,
  archive,
  park: (letter, by) => park(letter, by, { reason: 'operator' }),
}
const waiting = { neededSince: '2026-01-01T00:00:00.000Z' }
const names = Object.keys(changes) as BulkMoveName[]

const someone = (bench: StoreBench): Mover => ({ ...person(bench), note: 'it\'s 🦊\n"done"\0' })

function movesOf(bench: StoreBench, name: BulkMoveName): BulkMoves {
  const { at, actor } = person(bench)
  return bulkMovesFor(name, { at, actor })
}

const parked = (overrides: Partial<DeadLetter> = {}): DeadLetter =>
  aLetter({ state: 'parked', ...overrides })

/** The results and the letters after the move. Letters in states without a move stay. */
function expectedOf(
  letters: readonly DeadLetter[],
  name: BulkMoveName,
  by: Mover,
): { results: ApplyResult[]; after: DeadLetter[] } {
  const moves = bulkMovesFor(name, by)
  const isMoved = ({ state }: DeadLetter): boolean => moves[state] !== undefined
  return {
    results: letters.map((letter) => (isMoved(letter) ? 'written' : 'conflict')),
    after: letters.map((letter) =>
      isMoved(letter) ? withChange(letter, changes[name](letter, by)) : letter,
    ),
  }
}

async function expectLetters(store: Store, expected: readonly DeadLetter[]): Promise<void> {
  for (const letter of expected) expectSameLetter(await getLetter(store, letter.id), letter)
}

/** The totals of an action on these letters. */
function totalsOf(action: Total['action'], letters: readonly DeadLetter[]): Total[] {
  const places = Map.groupBy(letters, ({ queue, priority }) => JSON.stringify([queue, priority]))
  return [...places.values()].map((some) => ({
    action,
    queue: some[0]!.queue,
    priority: some[0]!.priority,
    count: some.length,
    retries: some.reduce((sum, { retries }) => sum + retries, 0),
    maxRetries: Math.max(...some.map(({ retries }) => retries)),
    backoffMs: some.reduce((sum, { backoffMs }) => sum + backoffMs, 0),
  }))
}

const sorted = (totals: readonly Total[]): string[] =>
  totals
    .map(({ action, queue, priority, count, retries, maxRetries, backoffMs }) =>
      JSON.stringify([action, queue, priority, count, retries, maxRetries, backoffMs]),
    )
    .sort()

/** Letters that must stay as they are. */
const refused: { title: string; change: (bench: StoreBench) => Promise<Refused> }[] = [
  {
    title: 'a letter that changed since',
    async change(bench) {
      const seen = parked()
      await bench.store.add([seen])
      await bench.store.apply([edit(seen, person(bench), { priority: 'high' })])
      return { letter: seen, result: 'conflict' }
    },
  },
  {
    title: 'a version that the letter does not have yet',
    async change({ store }) {
      const letter = parked()
      await store.add([letter])
      return { letter: { id: letter.id, version: letter.version + 1 }, result: 'conflict' }
    },
  },
  {
    title: 'a leased letter',
    async change(bench) {
      const letter = aLetter({ queue: 'leased' })
      await bench.store.add([letter])
      const request = { queues: ['leased'], leaseMs: longLeaseMs }
      return { letter: await claimOne(bench, request), result: 'conflict' }
    },
  },
  {
    title: 'a letter in a state without a move',
    async change({ store }) {
      const letter = aLetter({ state: 'archived' })
      await store.add([letter])
      return { letter, result: 'conflict' }
    },
  },
  {
    title: 'a letter that was removed',
    async change({ store }) {
      const letter = parked()
      await store.add([letter])
      await store.remove({ ids: [letter.id] })
      return { letter, result: 'missing' }
    },
  },
]

interface Refused {
  letter: LetterVersion
  result: ApplyResult
}

export const bulkChecks = [
  ...names.map((name) =>
    check(`makes ${name} on each letter as apply does`, async (bench) => {
      const { store } = bench
      const letters = states
        .filter((state) => state !== 'retrying')
        .map((state) =>
          aLetter({ state, retries: 2, ...(state === 'parked' ? { review: waiting } : {}) }),
        )
      await store.add(letters)
      const by = someone(bench)
      const { results, after } = expectedOf(letters, name, by)
      assert.deepEqual(await store.applyAll(letters, bulkMovesFor(name, by)), results)
      await expectLetters(store, after)
    }),
  ),

  ...names.map((name) =>
    check(`makes ${name} on letters of all kinds, and counts them exactly`, async (bench) => {
      const { store } = bench
      const mixed = mixedLetters(48)
      await store.add(mixed)
      const letters = (await store.get(ids(mixed))).toReversed()
      const before = await store.totals()
      const by = someone(bench)
      const { results, after } = expectedOf(letters, name, by)
      assert.deepEqual(await store.applyAll(letters, bulkMovesFor(name, by)), results)
      await expectLetters(store, after)
      await expectExact(store)
      const moved = after.filter((_, at) => results[at] === 'written')
      const expected = [...before, ...totalsOf(name, moved)]
      assert.deepEqual(sorted(await store.totals()), sorted(expected))
    }),
  ),

  ...refused.map(({ title, change }) =>
    check(`does not change ${title}`, async (bench) => {
      const { store } = bench
      const { letter, result } = await change(bench)
      const [before] = await store.get([letter.id])
      const others = [parked(), parked()] as const
      await store.add([...others])
      const list = [others[0], letter, others[1]]
      const results = await store.applyAll(list, movesOf(bench, 'resolve'))
      assert.deepEqual(results, ['written', result, 'written'])
      const [after] = await store.get([letter.id])
      if (before) expectSameLetter(after!, before)
      else assert.equal(after, undefined)
      assert.equal(await totalOf(store, 'resolve'), 2)
    }),
  ),

  check('returns missing for what is not the id of a letter', async (bench) => {
    const { store } = bench
    const letter = parked()
    await store.add([letter])
    const odd = ['', 'order-1', letter.id.toUpperCase(), ` ${letter.id}`, ...hostileNames]
    const list = [...odd.map((id) => ({ id, version: 1 })), letter]
    const expected = [...odd.map(() => 'missing'), 'written']
    assert.deepEqual(await store.applyAll(list, movesOf(bench, 'archive')), expected)
  }),

  check('leaves leased letters alone even if their state has a move', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench, { leaseMs: longLeaseMs })
    const { parked: move } = movesOf(bench, 'resolve')
    assert.deepEqual(await store.applyAll([leased], { retrying: move! }), ['conflict'])
    expectSameLetter(await getLetter(store, leased.id), leased)
  }),

  check('changes a letter once that is in the list twice', async (bench) => {
    const { store } = bench
    const [one, other] = [aLetter(), aLetter()]
    await store.add([one, other])
    const results = await store.applyAll([one, other, one], movesOf(bench, 'retry'))
    assert.deepEqual(results, ['written', 'written', 'conflict'])
    assert.equal((await getLetter(store, one.id)).version, one.version + 1)
    assert.equal(await totalOf(store, 'retry'), 2)
  }),

  check(
    'counts only the first entry of a letter, whatever the versions of the others',
    async (bench) => {
      const { store } = bench
      const [one, other, removed] = [parked(), parked(), parked()]
      await store.add([one, other])
      const next = (letter: DeadLetter) => ({ ...letter, version: letter.version + 1 })
      const fillers = Array.from({ length: 1200 }, () => parked())
      const list = [one, next(one), next(other), other, removed, removed, ...fillers, next(one)]
      const results = await store.applyAll(list, movesOf(bench, 'retry'))
      assert.deepEqual(
        results.filter((result) => result !== 'missing'),
        ['written', 'conflict', 'conflict', 'conflict', 'conflict'],
      )
      assert.equal(results.length, list.length)
      assert.equal((await getLetter(store, one.id)).version, one.version + 1)
      expectSameLetter(await getLetter(store, other.id), other)
      assert.equal(await totalOf(store, 'retry'), 1)
    },
  ),

  check('changes nothing when it is repeated', async (bench) => {
    const { store } = bench
    const letters = [aLetter(), parked(), parked({ lane: 'l', tags: ['t'] })]
    await store.add(letters)
    const moves = movesOf(bench, 'retry')
    assert.deepEqual(
      await store.applyAll(letters, moves),
      letters.map(() => 'written'),
    )
    const after = await store.get(ids(letters))
    const totals = await store.totals()
    assert.deepEqual(
      await store.applyAll(letters, moves),
      letters.map(() => 'conflict'),
    )
    await expectLetters(store, after)
    assert.deepEqual(sorted(await store.totals()), sorted(totals))
  }),

  check('returns the results of a long list in its order', async (bench) => {
    const { store } = bench
    const letters = Array.from({ length: 600 }, (_, n) =>
      parked({ retries: n % 3, ...(n % 100 === 7 ? { lane: 'l' } : {}) }),
    )
    const stored = letters.filter((_, n) => n % 50 !== 3)
    await store.add(stored)
    const list = letters
      .map(({ id, version }, n) => ({ id, version: n % 50 === 9 ? version + 1 : version }))
      .toReversed()
    const expected = letters
      .map((_, n) => (n % 50 === 3 ? 'missing' : n % 50 === 9 ? 'conflict' : 'written'))
      .toReversed()
    assert.deepEqual(await store.applyAll(list, movesOf(bench, 'retry')), expected)
    assert.deepEqual(
      await store.tally('state'),
      new Map([
        ['pending', 576],
        ['parked', 12],
      ]),
    )
    assert.equal(await totalOf(store, 'retry'), 576)
  }),

  check('makes no change without letters or without moves', async (bench) => {
    const { store } = bench
    const letter = parked()
    await store.add([letter])
    assert.deepEqual(await store.applyAll([], movesOf(bench, 'retry')), [])
    assert.deepEqual(await store.applyAll([letter], {}), ['conflict'])
    expectSameLetter(await getLetter(store, letter.id), letter)
  }),

  check('makes retried letters claimable', async (bench) => {
    const { store } = bench
    const letters = [aLetter({ state: 'exhausted' }), parked()]
    await store.add(letters)
    await store.applyAll(letters, movesOf(bench, 'retry'))
    assert.deepEqual(ids(await claim(bench)), ids(letters))
  }),

  check(
    'wakes a watcher when it makes letters due',
    async (bench) => {
      const letter = parked()
      const moves = movesOf(bench, 'retry')
      await expectWakeup(bench, [letter], (store) => store.applyAll([letter], moves))
    },
    needsWakeups,
  ),

  check('keeps the order of a lane', async (bench) => {
    const { store } = bench
    const [first, second] = [parked({ lane: 'l' }), parked({ lane: 'l' })]
    await store.add([first, second])
    await store.applyAll([second, first], movesOf(bench, 'retry'))
    assert.deepEqual(ids(await claim(bench)), [first.id])
  }),

  ...(['resolve', 'archive', 'park'] as const).map((name) =>
    check(`frees a lane with ${name} of its first letter`, async (bench) => {
      const { store } = bench
      const [first, second] = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
      await store.add([first, second])
      await store.applyAll([first], movesOf(bench, name))
      assert.deepEqual(ids(await claim(bench)), [second.id])
    }),
  ),

  check('releases letters that depend on resolved ones', async (bench) => {
    const { store } = bench
    const [one, other] = [parked(), parked({ lane: 'l' })]
    const dependent = aLetter({ dependsOn: [one.id, other.id] })
    await store.add([one, other, dependent])
    await store.applyAll([one], movesOf(bench, 'resolve'))
    assert.deepEqual(await claim(bench), [])
    await store.applyAll([other], movesOf(bench, 'resolve'))
    assert.deepEqual(ids(await claim(bench)), [dependent.id])
  }),

  check('holds a retried letter that depends on others', async (bench) => {
    const { store } = bench
    const root = parked()
    const dependent = parked({ dependsOn: [root.id] })
    await store.add([root, dependent])
    await store.applyAll([dependent], movesOf(bench, 'retry'))
    assert.deepEqual(await claim(bench), [])
    await store.applyAll([root], movesOf(bench, 'resolve'))
    assert.deepEqual(ids(await claim(bench)), [dependent.id])
  }),

  check(
    'changes each letter once when two handles have the same list',
    async (bench) => {
      const other = await openAnother(bench)
      const letters = Array.from({ length: 60 }, (_, n) => parked(n % 10 ? {} : { lane: 'l' }))
      await bench.store.add(letters)
      const moves = movesOf(bench, 'archive')
      const [mine, theirs] = await Promise.all([
        bench.store.applyAll(letters, moves),
        other.applyAll(letters.toReversed(), moves),
      ])
      for (const [n, result] of theirs.toReversed().entries())
        assert.deepEqual([mine[n]!, result].toSorted(), ['conflict', 'written'])
      assert.equal(await totalOf(bench.store, 'archive'), 60)
    },
    needsShared,
  ),
]

import assert from 'node:assert/strict'
import type { DeadLetter } from '../../letter/letter.ts'
import { archive, park, resolve, restore } from '../../letter/moves.ts'
import type { AddResult } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { openAnother, checkOn, needsShared, type StoreBench } from './check.ts'
import { claimOne, kinds, newFailure, person, getLetter, totalOf, worker } from './steps.ts'

const check = checkOn('dedupe')

const key = 'order-1'

export const dedupeChecks = [
  check('adds an occurrence instead of a letter', async (bench) => {
    const { store } = bench
    const letter = aLetter({ dedupeKey: key })
    const again = aLetter({ dedupeKey: key, ...newFailure(bench), queue: letter.queue })
    await store.add([letter])
    const results = await store.add([again])
    assert.deepEqual(results, [duplicateOf(letter, 2)])
    assert.deepEqual(await store.get([again.id]), [])
    assert.deepEqual(await store.tally('state'), new Map([['pending', 1]]))
  }),

  check('replaces the failure with the newer one', async (bench) => {
    const { store } = bench
    const letter = aLetter({ dedupeKey: key, priority: 'low', tags: ['first'] })
    const newer = newFailure(bench)
    const again = aLetter({ dedupeKey: key, ...newer, priority: 'high', tags: ['second'] })
    await store.add([letter])
    await store.add([again])
    const stored = await getLetter(store, letter.id)
    const { failure, category, severity, recoverability, fingerprint } = stored
    assert.deepEqual({ failure, category, severity, recoverability, fingerprint }, newer)
    assert.deepEqual(stored.firstFailure, letter.firstFailure)
    assert.equal(stored.priority, 'low')
    assert.deepEqual(stored.tags, ['first'])
    assert.equal(stored.version, letter.version + 1)
    assert.equal(stored.updatedAt, again.deadLetteredAt)
    const { action, from, to, failure: entryFailure } = stored.history.at(-1)!
    assert.deepEqual(
      { action, from, to, entryFailure },
      {
        action: 'occur',
        from: 'pending',
        to: 'pending',
        entryFailure: { name: 'TimeoutError', message: 'no answer', category: 'timeout' },
      },
    )
    assert.deepEqual(await store.tally('category'), new Map([['timeout', 1]]))
    assert.deepEqual(await store.tally('group'), new Map([['f2', 1]]))
    assert.equal(await totalOf(store, 'occur'), 1)
    assert.equal(await totalOf(store, 'capture'), 1)
  }),

  check('cuts a long message in the history without leaving a lone surrogate', async (bench) => {
    const { store } = bench
    const { failure } = newFailure(bench)
    const message = `${'x'.repeat(499)}\u{1f600}`
    const letter = aLetter({ dedupeKey: key })
    await store.add([letter])
    await store.add([aLetter({ dedupeKey: key, failure: { ...failure, message } })])
    const stored = await getLetter(store, letter.id)
    assert.equal(stored.failure.message, message)
    assert.equal(stored.history.at(-1)!.failure!.message, `${'x'.repeat(499)}\ufffd`)
  }),

  check('counts occurrences within one batch', async ({ store }) => {
    const letters = [1, 2, 3].map(() => aLetter({ dedupeKey: key }))
    const results = await store.add(letters)
    assert.deepEqual(results, [
      { kind: 'added' },
      duplicateOf(letters[0]!, 2),
      duplicateOf(letters[0]!, 3),
    ])
  }),

  check('applies while the letter is open: leased, exhausted, parked', async (bench) => {
    const { store } = bench
    const letter = aLetter({ dedupeKey: key })
    await store.add([letter])
    const leased = await claimOne(bench)
    assert.deepEqual(await store.add([aLetter({ dedupeKey: key })]), [duplicateOf(letter, 2)])
    const settled = park(leased, worker(bench), { reason: 'operator' })
    assert.deepEqual(
      await store.apply([settled]),
      ['written'],
      'an occurrence does not end the lease',
    )
    assert.deepEqual(await store.add([aLetter({ dedupeKey: key })]), [duplicateOf(letter, 3)])
  }),

  check('ends when the letter is resolved, archived or removed', async (bench) => {
    const { store } = bench
    const first = aLetter({ dedupeKey: key })
    await store.add([first])
    await store.apply([resolve(first, person(bench))])
    const second = aLetter({ dedupeKey: key })
    assert.deepEqual(await store.add([second]), [{ kind: 'added' }])
    await store.apply([archive(second, person(bench))])
    const third = aLetter({ dedupeKey: key })
    assert.deepEqual(await store.add([third]), [{ kind: 'added' }])
    await store.remove({ ids: [third.id] })
    assert.deepEqual(await store.add([aLetter({ dedupeKey: key })]), [{ kind: 'added' }])
  }),

  check('applies again when the letter is restored', async (bench) => {
    const { store } = bench
    const letter = aLetter({ dedupeKey: key })
    await store.add([letter])
    await store.apply([archive(letter, person(bench))])
    await store.apply([restore(await getLetter(store, letter.id), person(bench))])
    assert.deepEqual(await store.add([aLetter({ dedupeKey: key })]), [duplicateOf(letter, 2)])
  }),

  check('restores a letter even if another letter has its key by then', async (bench) => {
    const { store } = bench
    const first = aLetter({ dedupeKey: key })
    const second = aLetter({ dedupeKey: key })
    await store.add([first])
    await store.apply([archive(first, person(bench))])
    await store.add([second])
    const back = restore(await getLetter(store, first.id), person(bench))
    assert.deepEqual(await store.apply([back]), ['written'])
    const [result] = await store.add([aLetter({ dedupeKey: key })])
    assert.equal(result!.kind, 'duplicate')
    assert.deepEqual(await store.tally('state'), new Map([['pending', 2]]))
  }),

  check('applies within one queue', async ({ store }) => {
    const results = await store.add([
      aLetter({ dedupeKey: key }),
      aLetter({ dedupeKey: key, queue: 'other' }),
      aLetter({ dedupeKey: 'order-2' }),
      aLetter(),
      aLetter(),
    ])
    assert.deepEqual(kinds(results), ['added', 'added', 'added', 'added', 'added'])
  }),

  check('distinguishes similar keys', async ({ store }) => {
    const long = 'x'.repeat(10_000)
    const similarKeys = [
      'a',
      'A',
      'a ',
      'a\0',
      'a\0b',
      '\u00e9',
      'e\u0301',
      '',
      long,
      `${long}y`,
      '%',
      '_',
    ]
    const results = await store.add(similarKeys.map((dedupeKey) => aLetter({ dedupeKey })))
    assert.deepEqual(
      kinds(results),
      similarKeys.map(() => 'added'),
    )
    const again = await store.add(similarKeys.map((dedupeKey) => aLetter({ dedupeKey })))
    assert.deepEqual(
      kinds(again),
      similarKeys.map(() => 'duplicate'),
    )
  }),

  check('checks the id before the dedupeKey', async ({ store }) => {
    const letter = aLetter({ dedupeKey: key })
    await store.add([letter])
    const [result] = await store.add([letter])
    assert.deepEqual(result, { kind: 'duplicate', of: letter.id, by: 'id', occurrences: 1 })
    assert.equal((await getLetter(store, letter.id)).occurrences, 1)
  }),

  check('keeps one letter when one key is added many times at once', (bench) =>
    expectOneLetter(
      bench,
      Array.from({ length: 30 }, () => bench.store),
    ),
  ),

  check(
    'keeps one letter when two handles add one key at once',
    async (bench) => {
      const other = await openAnother(bench)
      await expectOneLetter(
        bench,
        Array.from({ length: 30 }, (_, n) => (n % 2 ? other : bench.store)),
      )
    },
    needsShared,
  ),
]

function duplicateOf(letter: DeadLetter, occurrences: number): AddResult {
  return { kind: 'duplicate', of: letter.id, by: 'dedupeKey', occurrences }
}

/** Adds one key through each handle at once. No occurrence may be lost, and none counted twice. */
async function expectOneLetter(
  { store }: StoreBench,
  handles: StoreBench['store'][],
): Promise<void> {
  const results = await Promise.all(
    handles.map((handle) => handle.add([aLetter({ dedupeKey: key })])),
  )
  assert.equal(kinds(results.flat()).filter((kind) => kind === 'added').length, 1)
  const { items } = await store.find({ payload: true })
  assert.equal(items.length, 1)
  assert.equal(items[0]!.occurrences, handles.length)
  assert.equal(await totalOf(store, 'occur'), handles.length - 1)
}

import assert from 'node:assert/strict'
import {
  archive,
  edit,
  exhaust,
  note,
  park,
  defer,
  release,
  replay,
  reschedule,
  resolve,
  restore,
  retry,
  withChange,
  type Change,
} from '../../letter/moves.ts'
import { encodePayload } from '../../letter/payload.ts'
import { aLetter } from '../a-letter.ts'
import { openAnother, checkOn, needsShared } from './check.ts'
import {
  ago,
  ahead,
  claim,
  claimOne,
  claimWhenDue,
  ids,
  newFailure,
  person,
  expectSameLetter,
  shortLeaseMs,
  getLetter,
  worker,
} from './steps.ts'

const check = checkOn('apply')

export const applyChecks = [
  check('refuses the result of a run of an earlier letter with the same id', async (bench) => {
    const { store } = bench
    const letter = aLetter()
    await store.add([letter])
    const stale = await claimOne(bench, { worker: 'w1' })
    await store.apply([resolve(stale, worker(bench))])
    await store.remove({ ids: [letter.id] })
    await store.add([letter])
    const current = await claimOne(bench, { worker: 'w2' })
    assert.equal(current.epoch, stale.epoch)
    assert.deepEqual(await store.apply([resolve(stale, worker(bench))]), ['conflict'])
    const ref = { id: letter.id, epoch: stale.epoch, worker: 'w1' }
    assert.deepEqual(await store.renew([ref], 1000), [false])
    assert.deepEqual(await store.apply([resolve(current, worker(bench))]), ['written'])
  }),

  check('adds a note to a letter in any state, also while it runs', async (bench) => {
    const { store } = bench
    const by = { ...person(bench), note: 'the bank says "no"\n\u2028 until Monday' }
    const resting = [
      aLetter({ retryAt: ahead(bench, 60_000), lane: 'a' }),
      ...(['resolved', 'exhausted', 'parked', 'archived'] as const).map((state) =>
        aLetter({ state }),
      ),
    ]
    await store.add([aLetter()])
    const running = await claimOne(bench)
    await store.add(resting)
    for (const letter of [running, ...resting]) {
      const change = note(letter, by)
      assert.deepEqual(await store.apply([change]), ['written'])
      expectSameLetter(await getLetter(store, letter.id), withChange(letter, change))
      assert.deepEqual(await store.apply([change]), ['conflict'])
    }
    assert.deepEqual(await store.apply([resolve(running, worker(bench))]), ['written'])
    const { history, state } = await getLetter(store, running.id)
    assert.deepEqual(
      [state, ...history.map(({ action }) => action)],
      ['resolved', 'capture', 'note', 'resolve'],
    )
  }),

  check('writes exactly the given change', async (bench) => {
    const { store } = bench
    await store.add([1, 2, 3, 4, 5, 6].map(() => aLetter({ tags: ['t'], metadata: { a: 1 } })))
    const [a, b, c, d, e, f] = await claim(bench)
    const by = worker(bench)
    const judged = newFailure(bench)
    const payload = { ...encodePayload({ left: ['x'] }), version: 2 }
    const changes = [
      { letter: a!, change: resolve(a!, by) },
      {
        letter: b!,
        change: reschedule(b!, by, { judged, retryAt: ahead(bench, 1000), backoffMs: 1000 }),
      },
      { letter: c!, change: exhaust(c!, by, { judged }) },
      { letter: d!, change: park(d!, { ...by, note: 'look' }, { reason: 'operator', judged }) },
      { letter: e!, change: release(e!, by) },
      {
        letter: f!,
        change: defer(f!, by, { judged, payload, retryAt: ahead(bench, 1000), backoffMs: 1000 }),
      },
    ]
    const results = await store.apply(changes.map(({ change }) => change))
    assert.deepEqual(
      results,
      changes.map(() => 'written'),
    )
    for (const { letter, change } of changes)
      expectSameLetter(await getLetter(store, letter.id), withChange(letter, change))
  }),

  check('writes the moves of a person, including archive and restore', async (bench) => {
    const { store } = bench
    const me = person(bench)
    let letter = aLetter()
    await store.add([letter])
    for (const move of [park, retryOf, editOf, archive, restore] as PersonsMove[]) {
      const change = move(letter, me, { reason: 'operator' })
      assert.deepEqual(await store.apply([change]), ['written'], change.action)
      letter = withChange(letter, change)
      expectSameLetter(await getLetter(store, letter.id), letter)
    }
    assert.equal((await claimOne(bench)).id, letter.id)
  }),

  check('lists a replayed letter that waits by its time', async (bench) => {
    const { store } = bench
    const me = person(bench)
    const letters = Array.from({ length: 3 }, () => aLetter({ state: 'parked' }))
    await store.add(letters)
    const [without, later, sooner] = letters
    const changes = [
      replay(later!, me, 1, ahead(bench, 2000)),
      replay(sooner!, me, 1, ahead(bench, 1000)),
    ]
    assert.deepEqual(await store.apply(changes), ['written', 'written'])
    const listed = async (): Promise<string[]> =>
      (await store.find({ state: 'parked', order: 'due' })).items.map(({ id }) => id)
    assert.deepEqual(await listed(), [sooner!.id, later!.id, without!.id])
    expectSameLetter(await getLetter(store, later!.id), withChange(later!, changes[0]!))
    await store.apply([archive(await getLetter(store, later!.id), me)])
    await store.apply([restore(await getLetter(store, later!.id), me)])
    assert.equal((await getLetter(store, later!.id)).retryAt, undefined)
    await store.apply([resolve(await getLetter(store, sooner!.id), me)])
    assert.deepEqual(await listed(), [without!.id, later!.id].sort())
    assert.deepEqual(await claim(bench), [])
  }),

  check('makes a rescheduled letter due at retryAt, not before', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench)
    const again = { judged: newFailure(bench), retryAt: ahead(bench, 80), backoffMs: 80 }
    await store.apply([reschedule(leased, worker(bench), again)])
    const [next] = await claimWhenDue(bench, again.retryAt)
    assert.equal(next?.epoch, leased.epoch + 1)
  }),

  check('does not count a run that was released', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench)
    await store.apply([release(leased, worker(bench))])
    const back = await getLetter(store, leased.id)
    assert.deepEqual({ retries: back.retries, state: back.state }, { retries: 0, state: 'pending' })
    const again = await claimOne(bench)
    assert.deepEqual({ retries: again.retries, epoch: again.epoch }, { retries: 1, epoch: 2 })
  }),

  check(
    'lets a worker settle after its lease expired if no other worker took over',
    async (bench) => {
      const { store } = bench
      await store.add([aLetter()])
      const leased = await claimOne(bench, { leaseMs: shortLeaseMs })
      await bench.advance(shortLeaseMs + 50)
      assert.deepEqual(await store.apply([resolve(leased, worker(bench))]), ['written'])
    },
  ),

  check('refuses a worker whose lease was taken over, and changes nothing', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const old = await claimOne(bench, { leaseMs: shortLeaseMs })
    await bench.advance(shortLeaseMs + 50)
    const current = await claimOne(bench, { worker: 'w-2' })
    const by = worker(bench)
    const judged = newFailure(bench)
    const late: Change[] = [
      resolve(old, by),
      reschedule(old, by, { judged, retryAt: by.at, backoffMs: 0 }),
      exhaust(old, by, { judged }),
      park(old, by, { reason: 'operator' }),
      release(old, by),
    ]
    assert.deepEqual(
      await store.apply(late),
      late.map(() => 'conflict'),
    )
    expectSameLetter(await getLetter(store, old.id), current)
    assert.deepEqual(await store.apply([resolve(current, worker(bench, 'w-2'))]), ['written'])
  }),

  check('refuses a worker after a person settled the letter', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench)
    assert.deepEqual(await store.apply([resolve(leased, person(bench))]), ['written'])
    const settled = await getLetter(store, leased.id)
    const late = exhaust(leased, worker(bench), { judged: newFailure(bench) })
    assert.deepEqual(await store.apply([late]), ['conflict'])
    expectSameLetter(await getLetter(store, leased.id), settled)
    assert.equal('lease' in settled, false)
  }),

  check('accepts one result per lease', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench)
    const change = resolve(leased, worker(bench))
    assert.deepEqual(await store.apply([change, change]), ['written', 'conflict'])
    assert.deepEqual(await store.apply([change]), ['conflict'])
  }),

  check('accepts one of many concurrent results', async (bench) => {
    const { store } = bench
    await store.add([aLetter()])
    const leased = await claimOne(bench)
    const change = resolve(leased, worker(bench))
    const results = await Promise.all(Array.from({ length: 20 }, () => store.apply([change])))
    assert.equal(results.flat().filter((result) => result === 'written').length, 1)
  }),

  check(
    'accepts one of two concurrent changes through two handles',
    async (bench) => {
      const other = await openAnother(bench)
      const letters = Array.from({ length: 20 }, () => aLetter())
      await bench.store.add(letters)
      const results = await Promise.all(
        letters.map((letter) =>
          Promise.all([
            bench.store.apply([archive(letter, person(bench))]),
            other.apply([resolve(letter, person(bench))]),
          ]),
        ),
      )
      for (const pair of results) assert.deepEqual(pair.flat().toSorted(), ['conflict', 'written'])
    },
    needsShared,
  ),

  check('refuses a change that is based on an older version', async (bench) => {
    const { store } = bench
    const seen = aLetter()
    await store.add([seen])
    const me = person(bench)
    await store.apply([edit(seen, me, { priority: 'high' })])
    const current = await getLetter(store, seen.id)
    assert.deepEqual(await store.apply([archive(seen, me), resolve(seen, me)]), [
      'conflict',
      'conflict',
    ])
    expectSameLetter(await getLetter(store, seen.id), current)
    assert.deepEqual(await store.apply([archive(current, me)]), ['written'])
  }),

  check('refuses a change that is based on the version before a claim', async (bench) => {
    const { store } = bench
    const seen = aLetter()
    await store.add([seen])
    const leased = await claimOne(bench)
    assert.deepEqual(await store.apply([archive(seen, person(bench))]), ['conflict'])
    expectSameLetter(await getLetter(store, seen.id), leased)
  }),

  check('returns missing for a letter that does not exist', async (bench) => {
    const absent = aLetter()
    const changes = [
      resolve(absent, person(bench)),
      { ...resolve(absent, person(bench)), guard: { epoch: 0 } },
    ]
    assert.deepEqual(await bench.store.apply(changes), ['missing', 'missing'])
    assert.deepEqual(await bench.store.get([absent.id]), [])
  }),

  check('writes each change independently, in the given order', async (bench) => {
    const { store } = bench
    const me = person(bench)
    const [a, b] = [aLetter(), aLetter()]
    await store.add([a, b])
    const edited = edit(a, me, { tags: ['first'] })
    const then = archive(withChange(a, edited), me)
    const stale = { ...resolve(b, me), guard: { version: 7 } }
    const results = await store.apply([edited, stale, then, resolve(b, me)])
    assert.deepEqual(results, ['written', 'conflict', 'written', 'written'])
    const [after] = await store.get([a.id])
    assert.deepEqual(
      { state: after!.state, version: after!.version },
      { state: 'archived', version: 3 },
    )
    assert.deepEqual(await store.apply([]), [])
  }),

  check(
    'keeps the first and the newest entries of a long history, and counts omitted ones',
    async (bench) => {
      const { store } = bench
      const [captured] = aLetter().history
      let letter = aLetter({ history: Array.from({ length: 45 }, () => captured!) })
      await store.add([letter])
      for (let n = 0; n < 12; n++) {
        const change = edit(letter, { ...person(bench), note: `edit ${n}` }, { tags: [`${n}`] })
        await store.apply([change])
        letter = withChange(letter, change)
      }
      const actual = await getLetter(store, letter.id)
      expectSameLetter(actual, letter)
      assert.equal(actual.history[0]!.action, 'capture')
      assert.equal(actual.history.at(-1)!.note, 'edit 11')
      assert.deepEqual([actual.history.length, actual.historyOmitted], [50, 7])
    },
  ),

  check('is not affected by later changes to a change object', async (bench) => {
    const { store } = bench
    const letter = aLetter()
    await store.add([letter])
    const change = edit(letter, person(bench), { tags: ['a'], metadata: { deep: { n: 1 } } })
    const expected = withChange(letter, structuredClone(change))
    await store.apply([change])
    change.set.tags!.push('overwritten')
    ;(change.set.metadata!['deep'] as { n: number }).n = 2
    change.entry.actor = 'overwritten'
    expectSameLetter(await getLetter(store, letter.id), expected)
  }),

  check('ignores fields of a change that are undefined', async (bench) => {
    const { store } = bench
    const letter = aLetter({ tags: ['a'], headers: { h: '1' } })
    await store.add([letter])
    const change = edit(letter, person(bench), { priority: 'high' })
    const expected = withChange(letter, structuredClone(change))
    Object.assign(change.set, { tags: undefined, headers: undefined, retryAt: undefined })
    await store.apply([change])
    expectSameLetter(await getLetter(store, letter.id), expected)
    assert.equal((await store.find({ tag: 'a' })).items.length, 1)
  }),

  check('reorders a pending letter when its due time or priority changes', async (bench) => {
    const { store } = bench
    const due = ago(bench, 1000)
    const [first, second, third] = [1, 2, 3].map(() => aLetter({ retryAt: due, priority: 'low' }))
    const later = aLetter({ retryAt: ahead(bench, 60_000) })
    await store.add([first!, second!, third!, later])
    const sooner = retry(later, person(bench))
    assert.deepEqual(
      ids((await store.find({ order: 'due' })).items).at(-1),
      later.id,
      'last, since it is not due yet',
    )
    await store.apply([{ ...sooner, set: { ...sooner.set, retryAt: ago(bench, 2000) } }])
    assert.deepEqual(ids((await store.find({ order: 'due' })).items)[0], later.id)
    await store.apply([edit(second!, person(bench), { priority: 'high' })])
    const expected = [second!, later, first!, third!]
    assert.deepEqual(ids(await claim(bench)), ids(expected))
  }),

  check('updates lists with every change', async (bench) => {
    const { store } = bench
    const letter = aLetter({ fingerprint: 'f1' })
    await store.add([letter])
    const leased = await claimOne(bench)
    await store.apply([exhaust(leased, worker(bench), { judged: newFailure(bench) })])
    const findIds = async (query: Parameters<typeof store.find>[0]) =>
      ids((await store.find(query)).items)
    assert.deepEqual(await findIds({ state: 'retrying' }), [])
    assert.deepEqual(await findIds({ group: 'f1' }), [])
    assert.deepEqual(await findIds({ group: 'f2' }), [letter.id])
    assert.deepEqual(await findIds({ state: 'exhausted', group: 'f2', order: 'settled' }), [
      letter.id,
    ])
    await store.remove({ group: 'f2' })
    assert.deepEqual(await findIds({ group: 'f2' }), [])
  }),
]

type PersonsMove = (
  letter: Parameters<typeof park>[0],
  by: Parameters<typeof park>[1],
  to: { reason: 'operator' },
) => Change

const retryOf: PersonsMove = (letter, by) => retry(letter, by)
const editOf: PersonsMove = (letter, by) =>
  edit(letter, by, {
    priority: 'critical',
    tags: ['x', 'y'],
    metadata: { edited: true },
    headers: { a: 'b' },
  })

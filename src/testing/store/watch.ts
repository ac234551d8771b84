import assert from 'node:assert/strict'
import type { DeadLetter } from '../../letter/letter.ts'
import { resolve, retry } from '../../letter/moves.ts'
import type { Store } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, needsWakeups, type StoreBench } from './check.ts'
import { claimOne, person, worker } from './stage.ts'

const check = checkOn('watch')

export const watchChecks = [
  check(
    'wakes a watcher when a letter is added that is due',
    (bench) => wakes(bench, [], (store) => store.add([aLetter()])),
    needsWakeups,
  ),

  check(
    'wakes a watcher when a letter is made due',
    async (bench) => {
      const letter = aLetter({ state: 'parked' })
      await wakes(bench, [letter], (store) => store.apply([retry(letter, person(bench))]))
    },
    needsWakeups,
  ),

  check(
    'wakes a watcher when a letter is freed: by its lane, by what it depended on',
    async (bench) => {
      await bench.store.add([aLetter({ lane: 'l' }), aLetter({ lane: 'l' })])
      const head = await claimOne(bench)
      await wakes(bench, [], (store) => store.apply([resolve(head, worker(bench))]))
      const root = aLetter({ state: 'parked' })
      const dependent = aLetter({ dependsOn: [root.id] })
      await wakes(bench, [root, dependent], (store) => store.apply([resolve(root, person(bench))]))
    },
    needsWakeups,
  ),

  check(
    'wakes a watcher when a removal frees a lane',
    async (bench) => {
      const [head, next] = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
      await wakes(bench, [head, next], (store) => store.remove({ ids: [head.id] }))
    },
    needsWakeups,
  ),

  check('bears a watcher that throws', async ({ store }) => {
    store.watch(() => {
      throw new Error('a bad watcher')
    })
    assert.deepEqual(await store.add([aLetter()]), [{ kind: 'added' }])
  }),

  check('stops when told, also twice', async (bench) => {
    let calls = 0
    const stop = bench.store.watch(() => void calls++)
    stop()
    stop()
    await bench.store.add([aLetter()])
    await bench.advance(50)
    assert.equal(calls, 0)
  }),
]

/** Adds letters, watches, acts, and waits for the wake-up; two seconds are ample for a hint. */
async function wakes(
  bench: StoreBench,
  before: DeadLetter[],
  act: (store: Store) => Promise<unknown>,
): Promise<void> {
  await bench.store.add(before)
  await bench.advance(50)
  const calls: true[] = []
  const stop = bench.store.watch(() => void calls.push(true))
  await act(bench.store)
  for (let tries = 0; tries < 20 && calls.length === 0; tries++) await bench.advance(100)
  stop()
  assert.ok(calls.length > 0, 'the watcher was called')
}

import assert from 'node:assert/strict'
import type { DeadLetter } from '../../letter/letter.ts'
import { resolve, retry } from '../../letter/moves.ts'
import type { Store } from '../../store.ts'
import { aLetter } from '../a-letter.ts'
import { checkOn, needsWakeups, type StoreBench } from './check.ts'
import { claimOne, person, worker } from './steps.ts'

const check = checkOn('watch')

export const watchChecks = [
  check(
    'wakes a watcher when a due letter is added',
    (bench) => expectWakeup(bench, [], (store) => store.add([aLetter()])),
    needsWakeups,
  ),

  check(
    'wakes a watcher when a letter is made due',
    async (bench) => {
      const letter = aLetter({ state: 'parked' })
      await expectWakeup(bench, [letter], (store) => store.apply([retry(letter, person(bench))]))
    },
    needsWakeups,
  ),

  check(
    'wakes a watcher when a lane or a dependency releases a letter',
    async (bench) => {
      await bench.store.add([aLetter({ lane: 'l' }), aLetter({ lane: 'l' })])
      const head = await claimOne(bench)
      await expectWakeup(bench, [], (store) => store.apply([resolve(head, worker(bench))]))
      const root = aLetter({ state: 'parked' })
      const dependent = aLetter({ dependsOn: [root.id] })
      await expectWakeup(bench, [root, dependent], (store) =>
        store.apply([resolve(root, person(bench))]),
      )
    },
    needsWakeups,
  ),

  check(
    'wakes a watcher when a removal frees a lane',
    async (bench) => {
      const [head, next] = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
      await expectWakeup(bench, [head, next], (store) => store.remove({ ids: [head.id] }))
    },
    needsWakeups,
  ),

  check('ignores errors of a watcher', async ({ store }) => {
    store.watch(() => {
      throw new Error('a bad watcher')
    })
    assert.deepEqual(await store.add([aLetter()]), [{ kind: 'added' }])
  }),

  check('stops watching; stop can be called twice', async (bench) => {
    let calls = 0
    const stop = bench.store.watch(() => void calls++)
    stop()
    stop()
    await bench.store.add([aLetter()])
    await bench.advance(50)
    assert.equal(calls, 0)
  }),
]

/** Adds letters, watches, acts, and waits up to two seconds for the wake-up. */
export async function expectWakeup(
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
  assert.ok(calls.length > 0, 'the watcher was not called')
}

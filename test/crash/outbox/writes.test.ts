import { describe, expect, it } from 'vitest'
import { takeOverMs } from '../../../src/observers/notify/outbox.ts'
import type { Records } from '../../../src/store.ts'
import { eachStore } from '../../each-store.ts'
import { aProcess, aRecorder, aWorld, type Recorder } from '../../observers/notify/a-process.ts'

/** Records of a process that dies at the nth write: before it, or after it was carried out. */
function dyingRecords(records: Records, diesAt: number, carriedOut: boolean): Records {
  let writes = 0
  let isDead = false
  const act = async <T>(isWrite: boolean, run: () => Promise<T>): Promise<T> => {
    const dies = isWrite && ++writes === diesAt
    if (isDead || (dies && !carriedOut)) {
      isDead = true
      throw new Error('killed')
    }
    const result = await run()
    if (dies) {
      isDead = true
      throw new Error('killed')
    }
    return result
  }
  return {
    get: (...args) => act(false, () => records.get(...args)),
    list: (...args) => act(false, () => records.list(...args)),
    kinds: () => act(false, () => records.kinds()),
    put: (...args) => act(true, () => records.put(...args)),
    remove: (...args) => act(true, () => records.remove(...args)),
  }
}

/** Every write in memory. Other stores behave alike, so that some writes are enough there. */
const writesOf = (store: string): number[] =>
  store === 'memory' ? Array.from({ length: 24 }, (_, n) => n + 1) : [1, 4, 9]

describe.each(eachStore)('a process that is killed at any write on %s', (store, open) => {
  const cases = writesOf(store).flatMap((write) => [
    [write, true] as const,
    [write, false] as const,
  ])
  it.each(cases)('loses no notification: write %i, carried out: %s', async (diesAt, carriedOut) => {
    const world = await aWorld(open)
    const instant = aRecorder()
    const digest = aRecorder({ digestMs: 300_000 })
    const targets = { instant: instant.target, digest: digest.target }
    const dying = aProcess(
      { ...world, connections: [dyingRecords(world.connections[0]!, diesAt, carriedOut)] },
      targets,
    )
    world.exhausted.add('a')
    world.exhausted.add('c')
    await dying.round()
    const live = aProcess(world, targets)
    for (let minute = 0; minute < 10; minute++) {
      await live.round()
      await world.clock.advance(takeOverMs)
    }
    const idsOf = (name: string, { received }: Recorder): Set<string> =>
      new Set(
        received.flatMap(({ id, changes }) =>
          changes.some(({ alert }) => alert.name === name) ? [id] : [],
        ),
      )
    // A receiver that ignores ids it has seen gets each change exactly once.
    for (const name of ['a', 'c'])
      for (const recorder of [instant, digest]) expect(idsOf(name, recorder).size).toBe(1)
    expect(await live.alerts.history()).toHaveLength(2)
    expect((await live.alerts.deliveries()).every(({ state }) => state === 'delivered')).toBe(true)
  })
})

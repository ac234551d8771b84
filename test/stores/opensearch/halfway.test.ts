import assert from 'node:assert/strict'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { park, resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { Store } from '../../../src/store.ts'
import { openSearchStore } from '../../../src/stores/opensearch/opensearch.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { backend } from '../../servers/servers.ts'
import { Front } from './front.ts'
import { pausing } from '../bench.ts'
import { Indices } from './opensearch-bench.ts'

const server = backend('opensearch')

/**
 * A process that dies between two writes: from one write on, nothing is sent any more. This is
 * repeated for every write of the step, until the step completes.
 */
describe.skipIf(server.missing)('a step that is cut off before any of its writes', () => {
  const indices = new Indices(server.url)
  const front = new Front(server.url)
  const clock = fakeClock()
  let url = ''
  // Nobody waits for a server that is gone permanently.
  const hasty: Clock = {
    ...pausing(clock),
    timer: (_ms, fire) => systemClock.timer(0, fire),
  }
  const dead: Store[] = []
  let second: Store

  beforeAll(async () => {
    url = await front.open()
    second = openSearchStore({ url: server.url, prefix: indices.prefix, clock: pausing(clock) })
    await second.open()
  })
  afterAll(async () => {
    front.fate = () => 'pass'
    await Promise.all([second, ...dead].map((store) => store.close()))
    await front.close()
    await indices.remove()
  })

  /**
   * Runs the step with a store that dies before the given write. Returns whether the step has no
   * such write.
   */
  async function dies(before: number, step: (store: Store) => Promise<unknown>): Promise<boolean> {
    front.fate = () => 'pass'
    const first = openSearchStore({ url, prefix: indices.prefix, clock: hasty })
    dead.push(first)
    await first.open()
    let writes = 0
    front.fate = (_, path) => {
      if (path.includes('/_bulk')) writes += 1
      return writes < before ? 'pass' : 'cut'
    }
    await step(first).catch(() => {})
    return writes < before
  }

  async function beforeEveryWrite(
    prepare: () => Promise<{
      step: (store: Store) => Promise<unknown>
      check: () => Promise<void>
    }>,
  ): Promise<void> {
    for (let before = 1, ended = false; !ended; before++) {
      await indices.clear()
      const { step, check } = await prepare()
      ended = await dies(before, step)
      // Long enough for leases to expire, and for unfinished work to be repaired.
      await clock.advance(120_000)
      await check()
      assert.ok(before < 20, 'the step comes to an end')
    }
  }

  const claimed = async (): Promise<DeadLetter[]> => {
    const { letters } = await second.claim({ worker: 'w2', limit: 10, leaseMs: 1000 })
    return letters
  }
  const person = () => ({ at: toTimestamp(clock.now()), actor: 'ada', guard: 'version' }) as const

  it('keeps one letter of a dedupeKey', async () => {
    await beforeEveryWrite(async () => {
      const letter = aLetter({ dedupeKey: 'k' })
      return {
        step: (store) => store.add([letter]),
        check: async () => {
          await claimed()
          const [again] = await second.add([letter])
          assert.ok(again!.kind === 'added' || (again!.kind === 'duplicate' && again!.by === 'id'))
          const [other] = await second.add([aLetter({ dedupeKey: 'k' })])
          assert.ok(other!.kind === 'duplicate' && other!.of === letter.id)
          assert.equal((await second.find({})).items.length, 1)
        },
      }
    })
  })

  it('frees the dependents of a resolved letter in the end', async () => {
    await beforeEveryWrite(async () => {
      const first = aLetter()
      const waiting = aLetter({ dependsOn: [first.id] })
      await second.add([first, waiting])
      return {
        step: (store) => store.apply([resolve(first, person())]),
        check: async () => {
          const [now] = await second.get([first.id])
          if (now!.state === 'pending') await second.apply([resolve(now!, person())])
          assert.deepEqual(
            (await claimed()).map(({ id }) => id),
            [waiting.id],
          )
        },
      }
    })
  })

  it('leaves no lane closed, and no letter lost in it', async () => {
    await beforeEveryWrite(async () => {
      const letters = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
      await second.add(letters)
      return {
        step: (store) => store.claim({ worker: 'w1', limit: 10, leaseMs: 1000 }),
        check: async () => {
          for (const { id } of letters) {
            const [head, ...others] = await claimed()
            assert.equal(head!.id, id)
            assert.deepEqual(others, [])
            await second.apply([resolve(head!, person())])
          }
        },
      }
    })
  })

  it('leaves the lane to the next letter when its letter was parked meanwhile', async () => {
    await beforeEveryWrite(async () => {
      const letters = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
      await second.add(letters)
      return {
        step: (store) => store.claim({ worker: 'w1', limit: 10, leaseMs: 1000 }),
        check: async () => {
          const [first] = await second.get([letters[0]!.id])
          await second.apply([park(first!, person(), { reason: 'operator' })])
          assert.deepEqual(
            (await claimed()).map(({ id }) => id),
            [letters[1]!.id],
          )
        },
      }
    })
  })

  it('has no effect when it continues after its lane was taken over', async () => {
    await indices.clear()
    const [older, younger] = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
    await second.add([younger])
    front.fate = () => 'pass'
    const slow = openSearchStore({ url, prefix: indices.prefix, clock: pausing(clock) })
    dead.push(slow)
    await slow.open()
    const held = Promise.withResolvers<void>()
    const free = Promise.withResolvers<'pass'>()
    front.fate = (_, path) => {
      if (!path.includes('-letters-writes/_bulk')) return 'pass'
      held.resolve()
      return free.promise
    }
    const claim = slow.claim({ worker: 'w1', limit: 10, leaseMs: 60_000 })
    await held.promise
    await second.add([older])
    const { letters } = await second.claim({ worker: 'w2', limit: 10, leaseMs: 60_000 })
    assert.deepEqual(
      letters.map(({ id }) => id),
      [older.id],
    )
    free.resolve('pass')
    assert.deepEqual((await claim).letters, [])
    assert.equal((await second.get([younger.id]))[0]!.state, 'pending')
  })
})

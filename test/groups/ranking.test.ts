import { describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { passThrough } from '../../src/stores/pass-through.ts'
import type { Store } from '../../src/store.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { deferred } from '../a-queue.ts'

const failed = (code: string): Error => Object.assign(new Error('no'), { code })

describe('the order of many groups', () => {
  it('is replaced while it is used, so that no page waits for it', async () => {
    const clock = fakeClock()
    const below = memoryStore({ clock })
    const counted = deferred()
    let isSlow = false
    const store: Store = passThrough(below, {
      tally: async (...args: Parameters<Store['tally']>) => {
        if (isSlow && args[0] === 'group') await counted.promise
        return below.tally(...args)
      },
    })
    const dlq = await DeadLetterQueue.open(store, { clock })
    const failures = Array.from({ length: 1001 }, (_, n) => ({
      operation: { type: 'orders' },
      error: failed(`E${n}`),
    }))
    await dlq.enqueueAll(failures)
    await dlq.enqueue({ type: 'orders' }, failed('E7'))
    const first = async (): Promise<number> => (await dlq.groups({ limit: 1 })).items[0]!.count
    expect(await first()).toBe(2)
    for (let n = 0; n < 2; n++) await dlq.enqueue({ type: 'orders' }, failed('E8'))
    isSlow = true
    await clock.advance(600)
    // The next order is being counted meanwhile.
    expect(await first()).toBe(2)
    isSlow = false
    counted.resolve()
    await clock.advance(0)
    expect(await first()).toBe(3)
    await dlq.close()
  })
})

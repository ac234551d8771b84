import { describe, expect, it } from 'vitest'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

const status = { kind: 'main', running: true, breaker: { state: 'closed' } }

describe('mailboxes', () => {
  it('lists the mailboxes of all live processes with their loops', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const orders = memoryMailbox({ name: 'orders', clock })
    const open = async (worker: string, name: string): Promise<DeadLetterQueue> => {
      const dlq = await DeadLetterQueue.open(store, { clock, worker })
      const loop = new MainLoop({ name, requests: orders, clock, process: () => {} })
      dlq.reportLoops(loop)
      // The same loop again is the same loop.
      dlq.reportLoops(loop)
      dlq.start()
      void loop.run()
      return dlq
    }
    const one = await open('one', 'charging')
    const other = await open('other', 'refunds')
    await orders.send({})
    await clock.advance(60_000)
    const counts = { received: 0, processed: 0, failed: 0, dead: 0 }
    const busy = { counts: { ...counts, received: 1, processed: 1 } }
    expect(await other.mailboxes()).toMatchObject([
      {
        name: 'orders',
        broker: 'memory',
        loops: [
          { ...status, ...busy, worker: 'one', name: 'charging' },
          { ...status, counts, worker: 'other', name: 'refunds' },
        ],
      },
    ])
    await one.stop()
    expect((await other.mailboxes())[0]!.loops.map(({ worker }) => worker)).toEqual(['other'])
    await other.stop()
    expect(await other.mailboxes()).toEqual([])
  })

  it('leaves out what a process of another version reports in another form', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const dlq = await DeadLetterQueue.open(store, { clock })
    const seenAt = new Date(clock.now()).toISOString()
    const loops = [null, 7, { name: 'a' }, { name: 'a', kind: 'main', mailbox: 'a', broker: 'b' }]
    await store.records.put('worker', 'old', { queues: [], seenAt, sweepMs: 5000, loops })
    expect(await dlq.mailboxes()).toEqual([])
    await dlq.close()
  })

  it('rejects what is no loop', async () => {
    const dlq = await DeadLetterQueue.open(memoryStore())
    expect(() => dlq.reportLoops({} as never)).toThrow(
      'argument 1 of reportLoops is no loop: give a MainLoop, an EvalLoop or a DLQConsumer',
    )
    await dlq.close()
  })
})

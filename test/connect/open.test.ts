import { describe, expect, it } from 'vitest'
import { aQueue } from '../a-queue.ts'

describe('the option onStoreCall', () => {
  it('cannot break a call of the store: its error is an event', async () => {
    const broken = new Error('the counter is broken')
    const bench = await aQueue({
      onStoreCall: () => {
        throw broken
      },
    })
    const { id } = await bench.dlq.enqueue({ type: 'mail', payload: 1 }, new Error('no'))
    expect(await bench.dlq.get(id)).toMatchObject({ id })
    expect(bench.eventsOf('error')).toContainEqual(
      expect.objectContaining({ during: 'onStoreCall of add', error: broken }),
    )
    await bench.dlq.close()
  })
})

import { describe, expect, it } from 'vitest'
import { decodePayload } from '../../src/letter/payload.ts'
import type { DeadLetterQueue } from '../../src/queue/queue.ts'
import { aQueue, refused } from '../a-queue.ts'
import { eachStore, withQueue } from '../each-store.ts'

const edit = { reason: 'typo', by: 'mia' }

async function versionsOf(dlq: DeadLetterQueue, id: string): Promise<unknown[]> {
  return (await dlq.payloads(id)).map(({ version, by, at, ...payload }) => ({
    version,
    by,
    at,
    value: decodePayload(payload),
  }))
}

describe.each(eachStore)('payload versions on a %s store', (_name, open) => {
  it('are the payload as captured, before each edit, and now', () =>
    withQueue(open, {}, async (dlq, clock) => {
      const captured = await dlq.enqueue({ type: 'a', payload: { n: 1 } }, refused())
      const { id } = captured
      const { actor, at } = captured.history[0]!
      const first = { version: 1, by: actor, at, value: { n: 1 } }
      expect(await versionsOf(dlq, id)).toEqual([first])
      await clock.advance(1000)
      const second = await dlq.edit(id, { payload: { n: 2 }, ...edit })
      await dlq.edit(id, { tags: ['a'], ...edit })
      await clock.advance(1000)
      const third = await dlq.edit(id, { payload: { n: 3 }, ...edit, by: 'tom' })
      expect(await versionsOf(dlq, id)).toEqual([
        first,
        { version: 2, by: 'mia', at: second.updatedAt, value: { n: 2 } },
        { version: 3, by: 'tom', at: third.updatedAt, value: { n: 3 } },
      ])
      await clock.advance(1000)
      const undone = await dlq.undoEdit(id, 'ann')
      expect(await versionsOf(dlq, id)).toEqual([
        first,
        { version: 4, by: 'ann', at: undone.updatedAt, value: { n: 2 } },
      ])
    }))

  it('are compared, by default the first with the current one', () =>
    withQueue(open, {}, async (dlq) => {
      const { id } = await dlq.enqueue({ type: 'a', payload: { n: 1 } }, refused())
      expect(await dlq.diff(id)).toMatchObject({ kind: 'same' })
      await dlq.edit(id, { payload: { n: 2 }, ...edit })
      await dlq.edit(id, { payload: { n: 3 }, ...edit })
      const changes = async (from?: number, to?: number) => {
        const diff = await dlq.diff(id, from, to)
        return diff.kind === 'json' ? diff.changes : diff.kind
      }
      expect(await changes()).toEqual([{ path: '/n', before: 1, after: 3 }])
      expect(await changes(2)).toEqual([{ path: '/n', before: 2, after: 3 }])
      expect(await changes(2, 1)).toEqual([{ path: '/n', before: 2, after: 1 }])
      const unknown = dlq.diff(id, 9)
      await expect(unknown).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(unknown).rejects.toThrow('(1, 2, 3), got 9')
    }))
})

describe('payload versions', () => {
  it('of an unknown letter are rejected', async () => {
    const { dlq } = await aQueue()
    const id = '01995c3a-0000-7000-8000-000000000000'
    await expect(dlq.payloads(id)).rejects.toMatchObject({ code: 'LETTER_NOT_FOUND' })
    await expect(dlq.diff(id)).rejects.toMatchObject({ code: 'LETTER_NOT_FOUND' })
  })
})

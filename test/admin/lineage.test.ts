import { describe, expect, it } from 'vitest'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import type { DeadLetterQueue } from '../../src/queue/queue.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { aQueue, forbidden } from '../a-queue.ts'
import { eachStore, withQueue } from '../each-store.ts'
import { deadLetterOne } from '../loops/dead-letter-one.ts'
import { aForeignLetter } from '../taps/a-foreign-letter.ts'

const idsOf = async (dlq: DeadLetterQueue, id: string): Promise<string[]> =>
  (await dlq.lineage(id)).map((letter) => letter.id)

describe.each(eachStore)('lineage on a %s store', (_name, open) => {
  it('lists the letters of a message that was replayed and died again', () =>
    withQueue(open, {}, async (dlq) => {
      const requests = memoryMailbox({ name: 'requests' })
      await requests.send({ order: 1 }, { id: 'm-1' })
      const first = await deadLetterOne(dlq, requests)
      await requests.send({ order: 2 }, { id: 'm-2' })
      const other = await deadLetterOne(dlq, requests)
      expect(await idsOf(dlq, first.id)).toEqual([first.id])
      await dlq.replay(first.id)
      const second = await deadLetterOne(dlq, requests)
      await dlq.replay(second.id)
      const third = await deadLetterOne(dlq, requests)
      await dlq.archive(third.id)
      for (const { id } of [first, second, third])
        expect(await dlq.lineage(id)).toMatchObject([
          { id: first.id, state: 'resolved', replays: 1, failure: 'Error: no such customer' },
          { id: second.id, state: 'resolved', replays: 2 },
          { id: third.id, state: 'archived', replays: 2, deadLetteredAt: third.deadLetteredAt },
        ])
      expect(await idsOf(dlq, other.id)).toEqual([other.id])
      await requests.close()
    }))
})

describe('lineage', () => {
  it('follows an operation that was replayed to a mailbox', async () => {
    const requests = memoryMailbox({ name: 'requests' })
    const { dlq } = await aQueue({ mailboxes: { requests } })
    const { id } = await dlq.enqueue({ type: 'charge', payload: 1 }, forbidden())
    await dlq.replay(id, 'mia', { to: 'requests' })
    const second = await deadLetterOne(dlq, requests)
    expect(await idsOf(dlq, id)).toEqual([id, second.id])
    expect(await idsOf(dlq, second.id)).toEqual([id, second.id])
    await requests.close()
  })

  it('follows a message that was replayed to another mailbox', async () => {
    const [requests, repaired] = [memoryMailbox({ name: 'a' }), memoryMailbox({ name: 'b' })]
    const { dlq } = await aQueue({ mailboxes: { b: repaired } })
    await requests.send(1, { id: 'm-1' })
    const first = await deadLetterOne(dlq, requests)
    await dlq.replay(first.id, 'mia', { to: 'b' })
    const second = await deadLetterOne(dlq, repaired)
    expect(await idsOf(dlq, first.id)).toEqual([first.id, second.id])
    expect(await idsOf(dlq, second.id)).toEqual([first.id, second.id])
    await Promise.all([requests.close(), repaired.close()])
  })

  it('follows a letter of a tap, whose broker gave the message another id', async () => {
    const { dlq, clock } = await aQueue()
    const keep = dlq.foreignLetters()
    await keep(aForeignLetter({ messageId: 'topic:0:7' }))
    await clock.advance(1000)
    const [first] = (await dlq.find()).items
    await dlq.resolve(first!.id)
    await keep(
      aForeignLetter({
        messageId: 'topic:0:9',
        headers: { 'redrive-replays': '1', 'redrive-original-id': 'topic:0:7' },
      }),
    )
    const second = (await dlq.find({ sourceId: 'topic:0:9' })).items[0]!
    expect(await idsOf(dlq, first!.id)).toEqual([first!.id, second.id])
    expect(await idsOf(dlq, second.id)).toEqual([first!.id, second.id])
  })

  it('follows a stream within its node', async () => {
    const { dlq, store } = await aQueue()
    const source = {
      kind: 'pipeline',
      cluster: 'c',
      node: 'parse',
      topic: 't',
      partition: 0,
      offset: '1',
      streamId: 's-1',
      hops: 1,
    } as const
    const day = (number: number) => `2026-01-0${number}T00:00:00.000Z`
    const first = aLetter({ source, deadLetteredAt: day(1) })
    const second = aLetter({ source, deadLetteredAt: day(2), replays: 1 })
    const elsewhere = aLetter({ source: { ...source, node: 'send' }, deadLetteredAt: day(3) })
    await store.add([second, first, elsewhere])
    expect(await idsOf(dlq, second.id)).toEqual([first.id, second.id])
    expect(await idsOf(dlq, elsewhere.id)).toEqual([elsewhere.id])
  })

  it('keeps messages apart that have the same id in different mailboxes', async () => {
    const [one, other] = [memoryMailbox({ name: 'a' }), memoryMailbox({ name: 'b' })]
    const { dlq } = await aQueue()
    for (const mailbox of [one, other]) await mailbox.send(1, { id: '1' })
    const letters = [await deadLetterOne(dlq, one), await deadLetterOne(dlq, other)]
    for (const { id } of letters) expect(await idsOf(dlq, id)).toEqual([id])
    await Promise.all([one.close(), other.close()])
  })

  it('rejects an unknown letter', async () => {
    const { dlq } = await aQueue()
    const unknown = dlq.lineage('01995c3a-0000-7000-8000-000000000000')
    await expect(unknown).rejects.toMatchObject({ code: 'LETTER_NOT_FOUND' })
  })
})

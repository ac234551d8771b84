import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ForeignLetter, ReturnedLetter } from '../../src/taps/tap.ts'
import { aQueue, refused, type QueueBench } from '../a-queue.ts'
import { aForeignLetter } from './a-foreign-letter.ts'

interface Bench extends QueueBench {
  sent: [letter: ReturnedLetter, generation: number][]
  /** Sets the answer of the broker from now on. */
  failWith: (error: unknown) => void
  /** Stores a letter, acts on it, and returns it to its source. */
  run: (foreign: ForeignLetter, before?: (id: string) => Promise<unknown>) => Promise<DeadLetter>
}

async function aTap(options: { maxReplays?: number } = {}): Promise<Bench> {
  const bench = await aQueue()
  const { dlq, clock, eventsOf } = bench
  const sent: Bench['sent'] = []
  let error: unknown
  const tap = {
    returnToSource: async (letter: ReturnedLetter, generation: number): Promise<void> => {
      sent.push([letter, generation])
      if (error !== undefined) throw error
    },
  }
  dlq.handle('orders', returnToSource(tap, options))
  dlq.start()
  const run: Bench['run'] = async (foreign, before) => {
    await dlq.foreignLetters()(foreign)
    const { id } = eventsOf('captured').at(-1)!.letter
    await before?.(id)
    await dlq.retry(id)
    await clock.advance(1)
    return (await dlq.get(id))!
  }
  return { ...bench, sent, run, failWith: (answer) => (error = answer) }
}

describe('returnToSource', () => {
  it('sends nothing by itself', async () => {
    const { dlq, sent, clock } = await aTap()
    await dlq.foreignLetters()(aForeignLetter())
    await clock.advance(3600 * 1000)
    expect(sent).toEqual([])
  })

  it('sends a letter unchanged, and resolves it', async () => {
    const { run, sent } = await aTap()
    const foreign = aForeignLetter()
    const letter = await run(foreign)
    expect(letter.state).toBe('resolved')
    const { body, contentType, headers, messageId } = foreign
    const origin = { ...foreign.origin, contentType }
    const [[home, generation] = []] = sent
    expect(Buffer.from(home!.body)).toEqual(Buffer.from(body))
    expect({ ...home, body }).toEqual({ body, contentType, headers, messageId, origin })
    expect(generation).toBe(1)
  })

  it('sends an edited letter with its new content type', async () => {
    const { run, sent, dlq } = await aTap()
    const headers = { 'Content-Type': 'text/plain', tenant: 'acme' }
    const foreign = aForeignLetter({ contentType: 'text/plain', headers })
    await run(foreign, (id) =>
      dlq.edit(id, { payload: { order: 8 }, by: 'somebody', reason: 'mended' }),
    )
    expect(Buffer.from(sent[0]![0].body).toString()).toBe('{"order":8}')
    expect(sent[0]![0]).toMatchObject({
      contentType: 'application/json',
      headers: { 'Content-Type': 'application/json', tenant: 'acme' },
    })
  })

  it('sends a body that does not match its content type unchanged', async () => {
    const { run, sent } = await aTap()
    const body = Buffer.from('{"order":')
    expect(await run(aForeignLetter({ body }))).toMatchObject({ state: 'resolved' })
    expect(sent[0]![0].contentType).toBe('application/json')
  })

  it('counts the generations of a letter; a repeated run is the same generation', async () => {
    const { run, sent, failWith, dlq, clock } = await aTap()
    failWith(refused())
    const headers = { 'redrive-replays': '1', 'redrive-original-id': 'm-0' }
    const { id, state } = await run(aForeignLetter({ headers }))
    expect(state).toBe('parked')
    failWith(undefined)
    await dlq.retry(id)
    await clock.advance(1)
    expect(sent.map(([, generation]) => generation)).toEqual([2, 2])
  })

  it('keeps a letter that its broker rejects', async () => {
    const { run, failWith } = await aTap()
    failWith(new RedriveError('MAILBOX_UNAVAILABLE', 'could not return the letter to the queue x'))
    expect(await run(aForeignLetter())).toMatchObject({
      state: 'parked',
      failure: { message: 'could not return the letter to the queue x' },
      firstFailure: { message: 'rejected' },
    })
  })

  it('rejects a letter that has returned too often', async () => {
    const { run, sent } = await aTap()
    const headers = { 'redrive-replays': '3' }
    const letter = await run(aForeignLetter({ headers }))
    expect(letter).toMatchObject({ state: 'parked', failure: { code: 'INVALID_INPUT' } })
    expect(letter.failure.message).toContain('returned to its source 3 times and died each time')
    expect(sent).toEqual([])
    const patient = await aTap({ maxReplays: 4 })
    expect(await patient.run(aForeignLetter({ headers }))).toMatchObject({ state: 'resolved' })
  })

  it('rejects a letter without an origin', async () => {
    const { run, sent, dlq } = await aTap()
    const letter = await run(aForeignLetter(), (id) =>
      dlq.edit(id, { metadata: { note: 'gone' }, by: 'somebody', reason: 'a mistake' }),
    )
    expect(letter).toMatchObject({ state: 'parked', failure: { code: 'INVALID_INPUT' } })
    expect(letter.failure.message).toContain('metadata.origin')
    expect(sent).toEqual([])
  })
})

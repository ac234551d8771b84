import { describe, expect, it } from 'vitest'
import { dedupedReplay, recordedSeen } from '../../../src/loops/handlers/deduped-replay.ts'
import type { Handled } from '../../../src/loops/handlers/handler.ts'
import type { DeadMessage } from '../../../src/loops/dead-message.ts'
import { memoryMailbox } from '../../../src/mailboxes/memory/memory.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aDeadMessage } from '../a-dead-message.ts'
import { aLoop } from '../a-loop.ts'

type Handler = (dead: DeadMessage) => Promise<Handled | void>

const context = { attempt: 1, signal: new AbortController().signal } as never
const of = (messageId: string, requestId?: string): DeadMessage =>
  aDeadMessage({ messageId, ...(requestId === undefined ? {} : { requestId }) })

function bench(): ReturnType<typeof aLoop> & { seen: ReturnType<typeof recordedSeen> } {
  const made = aLoop()
  return { ...made, seen: recordedSeen(memoryStore({ clock: made.clock }).records) }
}

describe('dedupedReplay', () => {
  it('sends one message of each request, also after a restart in another process', async () => {
    const { requests: source, seen } = bench()
    const first: Handler = async (dead) => dedupedReplay({ source, seen })(dead, context)
    const second: Handler = async (dead) => dedupedReplay({ source, seen })(dead, context)
    expect(await first(of('m-1', 'r-1'))).toEqual({ action: 'replayed' })
    expect(await second(of('m-2', 'r-1'))).toEqual({ action: 'discarded' })
    expect(await second(of('m-3', 'r-2'))).toEqual({ action: 'replayed' })
    expect(await source.approximateCount()).toBe(2)
  })

  it('never deduplicates messages without a request id', async () => {
    const { requests: source, seen } = bench()
    const handler = dedupedReplay({ source, seen })
    await handler(of('m-1'), context)
    await handler(of('m-2'), context)
    expect(await source.approximateCount()).toBe(2)
  })

  it('marks a request after it was sent, so that one that could not be sent is not lost', async () => {
    const { clock, seen } = bench()
    const source = memoryMailbox({ name: 'requests', clock, maxMessages: 1 })
    await source.send({})
    const handler = dedupedReplay({ source, seen })
    await expect(handler(of('m-1', 'r-1'), context)).rejects.toMatchObject({ code: 'MAILBOX_FULL' })
    await source.purge()
    expect(await handler(of('m-1', 'r-1'), context)).toEqual({ action: 'replayed' })
  })

  it('keeps the reply address', async () => {
    const { requests: source, seen } = bench()
    const dead = aDeadMessage({ requestId: 'r-1', replyTo: 'replies' })
    await dedupedReplay({ source, seen })(dead, context)
    const [message] = await source.receive()
    expect(message?.replyTo).toBe('replies')
  })

  it('sends a request again that failed again after its replay', async () => {
    const { requests: source, seen } = bench()
    const handler = dedupedReplay({ source, seen })
    await handler(of('m-1', 'r-1'), context)
    const again = aDeadMessage({ messageId: 'm-9', requestId: 'r-1', replays: 1 })
    expect(await handler(again, context)).toEqual({ action: 'replayed' })
  })

  it('counts a message as replayed although it could not be marked, and reports the error', async () => {
    const made = bench()
    const seen = { has: async () => false, add: () => Promise.reject(new Error('away')) }
    const handler = dedupedReplay({ source: made.requests, seen, onEvent: made.onEvent })
    expect(await handler(of('m-1', 'r-1'), context)).toEqual({ action: 'replayed' })
    expect(made.eventsOf('error')).toHaveLength(1)
  })

  it.each([1, 'yes', {}, null])(
    'discards nothing when seen returns %o, which is not a boolean',
    async (answer) => {
      const { requests: source } = bench()
      const seen = { has: async () => answer as boolean, add: async () => {} }
      await expect(dedupedReplay({ source, seen })(of('m-1', 'r-1'), context)).rejects.toThrow(
        'seen.has must return true or false',
      )
      expect(await source.approximateCount()).toBe(0)
    },
  )
})

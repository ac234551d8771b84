import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { createEmit } from '../../src/loops/events.ts'
import { settle, isStillOurs, type DeliveryContext } from '../../src/loops/settling.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { aLoop, faulty, type LoopBench } from './a-loop.ts'

async function received(bench: LoopBench, mailbox: Mailbox): Promise<DeliveryContext> {
  await bench.requests.send({})
  const [message] = await mailbox.receive({ visibilitySeconds: 60 })
  return { mailbox, message: message!, emit: createEmit(bench) }
}

describe('isStillOurs', () => {
  it('asks the broker, and leaves time for the next step', async () => {
    const bench = aLoop()
    const settling = await received(bench, bench.requests)
    await bench.clock.advance(55_000)
    expect(await isStillOurs(settling, 'writing', bench.clock.now())).toBe(true)
    await bench.clock.advance(29_000)
    expect(await bench.requests.receive()).toEqual([])
    await bench.requests.purge()
    expect(await isStillOurs(settling, 'writing', bench.clock.now())).toBe(false)
    expect(bench.eventsOf('message-lost')).toMatchObject([{ during: 'writing' }])
  })

  it('returns false when the broker does not answer', async () => {
    const bench = aLoop()
    const source = faulty(bench.requests)
    const settling = await received(bench, source.mailbox)
    source.faults.extend = new RedriveError('MAILBOX_UNAVAILABLE', 'away')
    expect(await isStillOurs(settling, 'writing', bench.clock.now())).toBe(false)
    expect(bench.eventsOf('error')).toHaveLength(1)
  })

  it('uses the end of the lease where the broker cannot extend', async () => {
    const bench = aLoop()
    const { message, emit } = await received(bench, bench.requests)
    const mailbox = {
      name: 'requests',
      powers: { ...bench.requests.powers, extend: false },
    } as Mailbox
    const settling = { mailbox, message, emit }
    expect(await isStillOurs(settling, 'writing', bench.clock.now())).toBe(true)
    await bench.clock.advance(60_000)
    expect(await isStillOurs(settling, 'writing', bench.clock.now())).toBe(false)
  })
})

describe('settle', () => {
  it('distinguishes a lost lease from an error, and throws neither', async () => {
    const bench = aLoop()
    const settling = await received(bench, bench.requests)
    const failing = (error: Error) => async (): Promise<never> => {
      throw error
    }
    const stale = new RedriveError('RECEIPT_EXPIRED', 'stale')
    expect(await settle(settling, 'acknowledging', failing(stale))).toBe(false)
    expect(await settle(settling, 'acknowledging', failing(new Error('away')))).toBe(false)
    expect(await settle(settling, 'acknowledging', () => settling.message.acknowledge())).toBe(true)
    expect(bench.events.map(({ type }) => type)).toEqual(['message-lost', 'error'])
  })
})

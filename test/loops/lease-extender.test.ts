import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { toMs } from '../../src/letter/time.ts'
import { Heartbeat } from '../../src/loops/heartbeat.ts'
import { LeaseExtender } from '../../src/loops/lease-extender.ts'
import type { Message } from '../../src/mailbox.ts'
import { aLoop, faulty, type Faulty, type LoopBench } from './a-loop.ts'

interface Bench extends LoopBench {
  message: Message
  heartbeat: Heartbeat
  source: Faulty
  extensions: () => number
}

async function aMessage(visibilitySeconds: number): Promise<Bench> {
  const bench = aLoop()
  const source = faulty(bench.requests)
  await bench.requests.send({})
  const [message] = await source.mailbox.receive({ visibilitySeconds })
  const extensions = (): number => source.calls.filter((call) => call === 'extend').length
  return { ...bench, source, message: message!, heartbeat: new Heartbeat(bench.clock), extensions }
}

describe('LeaseExtender', () => {
  it('extends at the first beat, and then at most once per interval', async () => {
    const { clock, message, heartbeat, extensions, settle } = await aMessage(100)
    new LeaseExtender({ clock, intervalMs: 60_000 }).attach(message, heartbeat)
    for (let beat = 0; beat < 5; beat++) heartbeat.beat()
    await settle()
    expect(extensions()).toBe(1)
    expect(toMs(message.visibleAt) - clock.now()).toBe(300_000)
    await clock.advance(59_999)
    heartbeat.beat()
    expect(extensions()).toBe(1)
    await clock.advance(1)
    heartbeat.beat()
    expect(extensions()).toBe(2)
  })

  it('holds a lease that is shorter than the interval', async () => {
    const { clock, message, heartbeat, requests } = await aMessage(6)
    new LeaseExtender({ clock, intervalMs: 60_000, extensionSeconds: 6 }).attach(message, heartbeat)
    for (let second = 0; second < 60; second++) {
      heartbeat.beat()
      await clock.advance(1000)
      expect(await requests.receive()).toEqual([])
    }
  })

  it('never shortens a lease', async () => {
    const { clock, message, heartbeat, settle, requests } = await aMessage(1800)
    new LeaseExtender({ clock, extensionSeconds: 300 }).attach(message, heartbeat)
    heartbeat.beat()
    await settle()
    await clock.advance(1_799_999)
    expect(await requests.receive()).toEqual([])
    await clock.advance(1)
    expect(await requests.receive()).toHaveLength(1)
  })

  it('lets the lease expire when the work stops beating', async () => {
    const { clock, message, heartbeat, requests, settle } = await aMessage(100)
    new LeaseExtender({ clock, extensionSeconds: 120 }).attach(message, heartbeat)
    heartbeat.beat()
    await settle()
    await clock.advance(120_000)
    expect(await requests.receive()).toHaveLength(1)
  })

  it('reports a failed extension and retries after the interval', async () => {
    const { clock, message, heartbeat, source, extensions, settle } = await aMessage(600)
    const errors: unknown[] = []
    const onError = (error: unknown): void => void errors.push(error)
    new LeaseExtender({ clock, onError }).attach(message, heartbeat)
    source.faults.extend = new RedriveError('MAILBOX_UNAVAILABLE', 'away')
    heartbeat.beat()
    await settle()
    expect(errors).toHaveLength(1)
    delete source.faults.extend
    await clock.advance(60_000)
    heartbeat.beat()
    await settle()
    expect(extensions()).toBe(2)
    expect(errors).toHaveLength(1)
  })

  it('reports that another consumer got the message', async () => {
    const { clock, message, heartbeat, settle } = await aMessage(10)
    let lost = 0
    new LeaseExtender({ clock }).attach(message, heartbeat, { lost: () => lost++ })
    await clock.advance(10_000)
    heartbeat.beat()
    await settle()
    expect(lost).toBe(1)
  })

  it('rejects attaching one message twice, and detaches it', async () => {
    const { clock, message, heartbeat, extensions, settle } = await aMessage(100)
    const extender = new LeaseExtender({ clock })
    const detach = extender.attach(message, heartbeat)
    expect(() => extender.attach(message, heartbeat)).toThrow('is already attached')
    detach()
    heartbeat.beat()
    await settle()
    expect(extensions()).toBe(0)
    extender.attach(message, heartbeat)
  })
})

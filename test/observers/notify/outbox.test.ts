import { describe, expect, it } from 'vitest'
import { Alerts } from '../../../src/observers/alerts/alerts.ts'
import { AlertMonitor } from '../../../src/observers/alerts/monitor.ts'
import { Outbox, maxAttempts, takeOverMs } from '../../../src/observers/notify/outbox.ts'
import { maxEnded, readDeliveries } from '../../../src/observers/notify/delivery.ts'
import type {
  Notification,
  SendResult,
  Target,
  TargetOptions,
} from '../../../src/observers/notify/target.ts'
import { ObserverHub, type RedriveEvent } from '../../../src/observer.ts'
import type { AlertRule } from '../../../src/policy/alert-rule.ts'
import type { Measures } from '../../../src/policy/alert-measures.ts'
import type { Records } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts'
import { copyRecords } from '../alerts/a-watcher.ts'

const everyMs = 60_000
const rule = (name: string, severity: AlertRule['severity'] = 'warning'): AlertRule => ({
  name,
  when: { metric: 'exhausted', above: 0 },
  queue: name,
  severity,
})

/** A target that records what it gets. */
interface Recorder {
  target: Target
  received: Notification[]
  /** `+name`, `-name` and `=name` (reminder) in order; digests in brackets. */
  changes: () => string[]
}

function aRecorder(options: TargetOptions = {}, results: SendResult[] = []): Recorder {
  const received: Notification[] = []
  const send = async (notification: Notification): Promise<SendResult> => {
    received.push(notification)
    return results.shift() ?? { sent: true, answer: 'ok' }
  }
  const signs = { raised: '+', cleared: '-', reminder: '=' }
  const changes = (): string[] =>
    received.map(({ kind, changes: all, stillRaised }) => {
      const parts = all.map(({ state, alert }) => signs[state] + alert.name)
      if (kind === 'alert') return parts.join()
      return `[${[...parts, ...stillRaised.map(({ name }) => `still ${name}`)].join(' ')}]`
    })
  return { target: { kind: 'webhook', ...options, send }, received, changes }
}

/** Queues with exhausted letters. */
type Exhausted = Set<string>

interface World {
  clock: FakeClock
  records: Records
  exhausted: Exhausted
}

function aWorld(): World {
  const clock = fakeClock()
  return { clock, records: memoryStore({ clock }).records, exhausted: new Set() }
}

interface Process {
  events: RedriveEvent[]
  alerts: Alerts
  /** Evaluates the rules once and sends what is due. */
  round: () => Promise<void>
  /** Sends what is due. */
  send: () => Promise<void>
}

/** A process on the store of a world. */
function aProcess(
  { clock, records, exhausted }: World,
  targets: Record<string, Target>,
  rules: AlertRule[] = [rule('a'), rule('b'), rule('c', 'critical')],
): Process {
  const hub = new ObserverHub()
  const events: RedriveEvent[] = []
  hub.on('*', (event) => events.push(event))
  const none = { exhausted: 0, parked: 0, pending: 0, resolved: 0, failed: 0, captured: 0 }
  const measure = async (): Promise<Measures> => ({
    all: none,
    queues: new Map([...exhausted].map((queue) => [queue, { ...none, exhausted: 1 }])),
  })
  const store = { records }
  const outbox = new Outbox({ store, clock, hub, targets, everyMs, baseUrl: 'https://r.example' })
  const monitor = new AlertMonitor({ store, clock, hub, rules, everyMs, measure })
  const once = async (part: { start(): void; stop(): Promise<void> }): Promise<void> => {
    part.start()
    await part.stop()
  }
  const send = (): Promise<void> => once(outbox)
  const round = async (): Promise<void> => {
    await once(monitor)
    await send()
  }
  return { events, alerts: new Alerts({ store, clock, targets }), round, send }
}

describe('Outbox', () => {
  it('sends each change once, whatever the number of processes and restarts', async () => {
    const world = aWorld()
    const { target, received, changes } = aRecorder()
    const processes = [aProcess(world, { t: target }), aProcess(world, { t: target })]
    world.exhausted.add('a')
    for (let round = 0; round < 3; round++)
      await Promise.all(processes.map((process) => process.round()))
    await aProcess(world, { t: target }).round()
    world.exhausted.clear()
    await Promise.all(processes.map((process) => process.round()))
    await aProcess(world, { t: target }).round()
    expect(changes()).toEqual(['+a', '-a'])
    expect(new Set(received.map(({ id }) => id)).size).toBe(2)
    expect(received[0]).toMatchObject({ link: 'https://r.example', kind: 'alert' })
  })

  it('sends changes that a process without targets made', async () => {
    const world = aWorld()
    const { target, changes } = aRecorder()
    world.exhausted.add('a')
    await aProcess(world, {}).round()
    await world.clock.advance(everyMs)
    await aProcess(world, { t: target }, []).send()
    expect(changes()).toEqual(['+a'])
  })

  it('does not send changes that nobody could send for a day', async () => {
    const world = aWorld()
    const { target, changes } = aRecorder()
    world.exhausted.add('a')
    await aProcess(world, {}).round()
    await world.clock.advance(86_400_001)
    const process = aProcess(world, { t: target })
    await process.round()
    expect(changes()).toEqual([])
    expect(await process.alerts.history()).toMatchObject([{ state: 'raised' }])
  })

  it('retries with the same id and growing delays, then succeeds', async () => {
    const world = aWorld()
    const again: SendResult = { sent: false, again: true, answer: 'answered 503' }
    const { target, received } = aRecorder({}, [again, { ...again, afterMs: 120_000 }])
    const process = aProcess(world, { t: target })
    world.exhausted.add('a')
    await process.round()
    await process.send()
    expect(received).toHaveLength(1)
    expect(await process.alerts.deliveries()).toMatchObject([
      { state: 'waiting', attempts: 1, answer: 'answered 503', target: 't' },
    ])
    await world.clock.advance(10_000)
    await process.send()
    expect(received).toHaveLength(2)
    await world.clock.advance(119_000)
    await process.send()
    expect(received).toHaveLength(2)
    await world.clock.advance(1000)
    await process.send()
    expect(received).toHaveLength(3)
    expect(new Set(received.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(await process.alerts.deliveries()).toMatchObject([{ state: 'delivered', attempts: 3 }])
  })

  it('marks a delivery as failed after the last attempt, and reports it', async () => {
    const world = aWorld()
    const again: SendResult = { sent: false, again: true, answer: 'answered 503' }
    const { target, received } = aRecorder(
      {},
      Array.from({ length: maxAttempts }, () => again),
    )
    const process = aProcess(world, { t: target })
    world.exhausted.add('a')
    await process.round()
    for (let hour = 0; hour < 20; hour++) {
      await world.clock.advance(3_600_000)
      await process.send()
    }
    expect(received).toHaveLength(maxAttempts)
    expect(await process.alerts.deliveries()).toMatchObject([
      { state: 'failed', attempts: maxAttempts, answer: 'answered 503' },
    ])
    const errors = process.events.filter(({ type }) => type === 'error')
    expect(errors).toMatchObject([
      { error: { message: expect.stringContaining('to t failed after 12 attempts') } },
    ])
  })

  it('does not repeat what cannot succeed', async () => {
    const world = aWorld()
    const { target, received } = aRecorder({}, [
      { sent: false, again: false, answer: 'answered 404' },
    ])
    const process = aProcess(world, { t: target })
    world.exhausted.add('a')
    await process.round()
    await world.clock.advance(86_400_000)
    await process.round()
    expect(received).toHaveLength(1)
    expect(await process.alerts.deliveries()).toMatchObject([{ state: 'failed', attempts: 1 }])
  })

  it('never clears an alert at a receiver before it is raised there', async () => {
    const world = aWorld()
    const again: SendResult = { sent: false, again: true, answer: 'answered 503' }
    const { target, changes } = aRecorder({}, [again, again])
    const process = aProcess(world, { t: target })
    world.exhausted.add('a')
    await process.round()
    world.exhausted.clear()
    world.exhausted.add('c')
    await process.round()
    expect(changes()).toEqual(['+a', '+c'])
    await world.clock.advance(600_000)
    await process.send()
    await process.send()
    expect(changes()).toEqual(['+a', '+c', '+a', '-a', '+c'])
  })

  it('sends to each target, and a target that fails does not hold up the others', async () => {
    const world = aWorld()
    const bad = aRecorder({}, [{ sent: false, again: true, answer: 'no' }])
    const good = aRecorder()
    world.exhausted.add('a')
    await aProcess(world, { bad: bad.target, good: good.target }).round()
    expect(good.changes()).toEqual(['+a'])
    expect(good.received[0]!.id).not.toBe(bad.received[0]!.id)
  })

  it('fails deliveries to a target that no process has any more', async () => {
    const world = aWorld()
    const gone = aRecorder({}, [{ sent: false, again: true, answer: 'answered 503' }])
    world.exhausted.add('a')
    await aProcess(world, { gone: gone.target }).round()
    const process = aProcess(world, { other: aRecorder().target })
    await world.clock.advance(8 * 86_400_000)
    await process.send()
    expect(await process.alerts.deliveries()).toMatchObject([{ target: 'gone', state: 'failed' }])
  })

  it('keeps a bounded number of deliveries', async () => {
    const world = aWorld()
    const { target } = aRecorder()
    const rules = Array.from({ length: 300 }, (_, n) => rule(`r${n}`))
    const process = aProcess(world, { t: target }, rules)
    for (const { name } of rules) world.exhausted.add(name)
    await process.round()
    world.exhausted.clear()
    await process.round()
    for (let round = 0; round < 40; round++) await process.send()
    const all = await readDeliveries(world.records)
    expect(all.every(({ state }) => state === 'delivered')).toBe(true)
    expect(all.length).toBe(maxEnded)
  })
})

describe('a digest', () => {
  const digestMs = 900_000

  it('collects alerts that are not critical into one message', async () => {
    const world = aWorld()
    const { target, changes, received } = aRecorder({ digestMs })
    const process = aProcess(world, { t: target }, [
      rule('old'),
      rule('a'),
      rule('b'),
      rule('c', 'critical'),
    ])
    world.exhausted.add('old')
    await process.round()
    await world.clock.advance(digestMs)
    await process.send()
    expect(changes()).toEqual(['[+old]'])
    for (const queue of ['a', 'b', 'c']) world.exhausted.add(queue)
    await process.round()
    world.exhausted.delete('b')
    await process.round()
    expect(changes()).toEqual(['[+old]', '+c'])
    await world.clock.advance(digestMs)
    await process.send()
    expect(changes()).toEqual(['[+old]', '+c', '[+a +b -b still c still old]'])
    expect(received[2]).toMatchObject({ kind: 'digest' })
    await world.clock.advance(digestMs)
    await process.round()
    expect(received).toHaveLength(3)
  })

  it('has the same content in every attempt, and later changes are in the next one', async () => {
    const world = aWorld()
    const again: SendResult = { sent: false, again: true, answer: 'answered 503' }
    const { target, changes, received } = aRecorder({ digestMs }, [again])
    const process = aProcess(world, { t: target })
    world.exhausted.add('a')
    await process.round()
    await world.clock.advance(digestMs)
    await process.send()
    world.exhausted.add('b')
    await process.round()
    await world.clock.advance(digestMs)
    await process.send()
    expect(changes()).toEqual(['[+a]', '[+a]', '[+b still a]'])
    expect(received[0]).toEqual(received[1])
  })

  it('is written by several processes without losing a change', async () => {
    const world = aWorld()
    const { target, changes } = aRecorder({ digestMs })
    const rules = Array.from({ length: 20 }, (_, n) => rule(`r${n}`))
    const processes = Array.from({ length: 4 }, () => aProcess(world, { t: target }, rules))
    for (const { name } of rules) world.exhausted.add(name)
    await Promise.all(processes.map((process) => process.round()))
    await world.clock.advance(digestMs)
    await Promise.all(processes.map((process) => process.send()))
    expect(changes()).toHaveLength(1)
    expect(changes()[0]!.match(/\+r\d+/g)).toHaveLength(20)
  })
})

describe('reminders', () => {
  const remindMs = 3_600_000

  it('come at the interval until the alert is acknowledged', async () => {
    const world = aWorld()
    const { target, changes } = aRecorder({ remindMs })
    const processes = [aProcess(world, { t: target }), aProcess(world, { t: target })]
    world.exhausted.add('a')
    const pass = async (): Promise<void> => {
      await Promise.all(processes.map((process) => process.round()))
      await world.clock.advance(remindMs / 2)
    }
    for (let half = 0; half < 5; half++) await pass()
    expect(changes()).toEqual(['+a', '=a', '=a'])
    const { alerts } = processes[0]!
    expect(await alerts.acknowledge('a', 'mia', 'we know')).toMatchObject({
      acknowledged: { by: 'mia', note: 'we know' },
    })
    for (let half = 0; half < 5; half++) await pass()
    expect(changes()).toEqual(['+a', '=a', '=a'])
    expect(await alerts.raised()).toMatchObject([{ acknowledged: { by: 'mia' } }])
    world.exhausted.clear()
    await pass()
    world.exhausted.add('a')
    for (let half = 0; half < 3; half++) await pass()
    expect(changes()).toEqual(['+a', '=a', '=a', '-a', '+a', '=a'])
    await expect(alerts.acknowledge('nothing', 'mia')).rejects.toMatchObject({
      code: 'ALERT_NOT_FOUND',
    })
  })
})

describe('titles of groups', () => {
  it('are sent only to targets with content', async () => {
    const world = aWorld()
    const closed = aRecorder()
    const open = aRecorder({ content: true })
    const process = aProcess(world, { closed: closed.target, open: open.target })
    world.exhausted.add('a')
    const title = 'Error: card 4111'
    // A rule about groups writes the title into the change.
    const records = copyRecords(world.records)
    const titled: Records = {
      ...records,
      put: (kind, id, value, version) =>
        records.put(
          kind,
          id,
          kind === 'alert-event'
            ? { ...(value as object), alert: { ...(value as { alert: object }).alert, title } }
            : value,
          version,
        ),
    }
    await aProcess({ ...world, records: titled }, {}).round()
    await process.send()
    expect(JSON.stringify(open.received)).toContain('4111')
    expect(JSON.stringify(closed.received)).not.toContain('4111')
  })
})

/** Records of a process that dies at the nth write: before it, or after it was carried out. */
function dyingRecords(records: Records, diesAt: number, carriedOut: boolean): Records {
  let writes = 0
  let isDead = false
  const act = async <T>(isWrite: boolean, run: () => Promise<T>): Promise<T> => {
    const dies = isWrite && ++writes === diesAt
    if (isDead || (dies && !carriedOut)) {
      isDead = true
      throw new Error('killed')
    }
    const result = await run()
    if (dies) {
      isDead = true
      throw new Error('killed')
    }
    return result
  }
  return {
    get: (...args) => act(false, () => records.get(...args)),
    list: (...args) => act(false, () => records.list(...args)),
    kinds: () => act(false, () => records.kinds()),
    put: (...args) => act(true, () => records.put(...args)),
    remove: (...args) => act(true, () => records.remove(...args)),
  }
}

describe('a process that is killed at any write', () => {
  const cases = Array.from({ length: 48 }, (_, n) => [(n >> 1) + 1, n % 2 === 0] as const)
  it.each(cases)('loses no notification: write %i, carried out: %s', async (diesAt, carriedOut) => {
    const world = aWorld()
    const instant = aRecorder()
    const digest = aRecorder({ digestMs: 300_000 })
    const targets = { instant: instant.target, digest: digest.target }
    const dying = aProcess(
      { ...world, records: dyingRecords(world.records, diesAt, carriedOut) },
      targets,
    )
    world.exhausted.add('a')
    world.exhausted.add('c')
    await dying.round()
    const live = aProcess(world, targets)
    for (let minute = 0; minute < 10; minute++) {
      await live.round()
      await world.clock.advance(takeOverMs)
    }
    const idsOf = (name: string, { received }: Recorder): Set<string> =>
      new Set(
        received.flatMap(({ id, changes }) =>
          changes.some(({ alert }) => alert.name === name) ? [id] : [],
        ),
      )
    // A receiver that ignores ids it has seen gets each change exactly once.
    for (const name of ['a', 'c'])
      for (const recorder of [instant, digest]) expect(idsOf(name, recorder).size).toBe(1)
    expect(await live.alerts.history()).toHaveLength(2)
    expect((await live.alerts.deliveries()).every(({ state }) => state === 'delivered')).toBe(true)
  })
})

import { describe, expect, it } from 'vitest'
import { maxAttempts } from '../../../src/observers/notify/outbox.ts'
import { maxEnded, readDeliveries } from '../../../src/observers/notify/delivery.ts'
import type { SendResult } from '../../../src/observers/notify/target.ts'
import type { Records } from '../../../src/store.ts'
import { eachStore } from '../../each-store.ts'
import { copyRecords } from '../alerts/a-watcher.ts'
import { aProcess, aRecorder, aWorld, everyMs, rule } from './a-process.ts'

const inMemory = eachStore[0]![1]

describe.each(eachStore)('Outbox on %s', (_, open) => {
  it('sends each change once, whatever the number of processes and restarts', async () => {
    const world = await aWorld(open)
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
    const world = await aWorld(open)
    const { target, changes } = aRecorder()
    world.exhausted.add('a')
    await aProcess(world, {}).round()
    await world.clock.advance(everyMs)
    await aProcess(world, { t: target }, []).send()
    expect(changes()).toEqual(['+a'])
  })

  it('does not send changes that nobody could send for a day', async () => {
    const world = await aWorld(open)
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
    const world = await aWorld(open)
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
    const world = await aWorld(open)
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
    const world = await aWorld(open)
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
    const world = await aWorld(open)
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
    const world = await aWorld(open)
    const bad = aRecorder({}, [{ sent: false, again: true, answer: 'no' }])
    const good = aRecorder()
    world.exhausted.add('a')
    await aProcess(world, { bad: bad.target, good: good.target }).round()
    expect(good.changes()).toEqual(['+a'])
    expect(good.received[0]!.id).not.toBe(bad.received[0]!.id)
  })

  it('fails deliveries to a target that no process has any more', async () => {
    const world = await aWorld(open)
    const gone = aRecorder({}, [{ sent: false, again: true, answer: 'answered 503' }])
    world.exhausted.add('a')
    await aProcess(world, { gone: gone.target }).round()
    const process = aProcess(world, { other: aRecorder().target })
    await world.clock.advance(8 * 86_400_000)
    await process.send()
    await process.send()
    const answer = 'no process has this target; the last answer was: answered 503'
    expect(await process.alerts.deliveries()).toMatchObject([
      { target: 'gone', state: 'failed', answer },
    ])
    expect(process.events.filter(({ type }) => type === 'error')).toMatchObject([
      { error: { message: expect.stringMatching(`to gone failed after 1 attempts: ${answer}$`) } },
    ])
  })
})

describe.each(eachStore)('a digest on %s', (_, open) => {
  const digestMs = 900_000

  it('collects alerts that are not critical into one message', async () => {
    const world = await aWorld(open)
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
    const world = await aWorld(open)
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

  it('can collect alerts for two weeks, also if other processes do not have its target', async () => {
    const world = await aWorld(open)
    const weeksMs = 14 * 86_400_000
    const { target, changes } = aRecorder({ digestMs: weeksMs })
    const process = aProcess(world, { t: target })
    const other = aProcess(world, { other: aRecorder().target })
    world.exhausted.add('a')
    await process.round()
    await world.clock.advance(weeksMs - 1)
    await other.send()
    await process.send()
    expect(changes()).toEqual([])
    await world.clock.advance(1)
    await process.send()
    expect(changes()).toEqual(['[+a]'])
  })

  it('is sent however long no process with its target ran', async () => {
    const world = await aWorld(open)
    const { target, changes } = aRecorder({ digestMs })
    world.exhausted.add('a')
    await aProcess(world, { t: target }).round()
    await world.clock.advance(30 * 86_400_000)
    await aProcess(world, { t: target }).send()
    expect(changes()).toEqual(['[+a]'])
  })

  it('is written by several processes without losing a change', async () => {
    const world = await aWorld(open)
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

describe.each(eachStore)('reminders on %s', (_, open) => {
  const remindMs = 3_600_000

  it('are written once', async () => {
    const world = await aWorld(open)
    const written: string[] = []
    const records = copyRecords(world.connections[0]!)
    const put: Records['put'] = (kind, id, ...rest) => {
      if (id.includes('-r1.')) written.push(id)
      return records.put(kind, id, ...rest)
    }
    const { target, changes } = aRecorder({ remindMs })
    const process = aProcess({ ...world, connections: [{ ...records, put }] }, { t: target })
    world.exhausted.add('a')
    await process.round()
    await world.clock.advance(remindMs)
    for (let round = 0; round < 5; round++) await process.round()
    expect(changes()).toEqual(['+a', '=a'])
    // The delivery is created, claimed and delivered.
    expect(written).toHaveLength(3)
  })

  it('come at the interval until the alert is acknowledged', async () => {
    const world = await aWorld(open)
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

describe('the number of deliveries', () => {
  it('is bounded', async () => {
    const world = await aWorld(inMemory)
    const { target } = aRecorder()
    const rules = Array.from({ length: 300 }, (_, n) => rule(`r${n}`))
    const process = aProcess(world, { t: target }, rules)
    for (const { name } of rules) world.exhausted.add(name)
    await process.round()
    world.exhausted.clear()
    await process.round()
    for (let round = 0; round < 40; round++) await process.send()
    const all = await readDeliveries(world.connections[0]!)
    expect(all.every(({ state }) => state === 'delivered')).toBe(true)
    expect(all.length).toBe(maxEnded)
  })

  it('may be exceeded by current reminders, which are not sent again', async () => {
    const world = await aWorld(inMemory)
    const remindMs = 14 * 86_400_000
    const reminded = aRecorder({ remindMs })
    const digest = aRecorder({ remindMs, digestMs: 1000 })
    const targets = { reminded: reminded.target, digest: digest.target }
    const rules = Array.from({ length: maxEnded }, (_, n) => rule(`r${n}`, 'critical'))
    const process = aProcess(world, targets, [rule('a'), ...rules])
    world.exhausted.add('a')
    await process.round()
    await world.clock.advance(remindMs)
    await process.round()
    await world.clock.advance(1000)
    await process.send()
    for (const { name } of rules) world.exhausted.add(name)
    await process.round()
    for (let round = 0; round < maxEnded / 20 + 2; round++) await process.send()
    expect(reminded.received).toHaveLength(2 + maxEnded)
    const all = await readDeliveries(world.connections[0]!)
    expect(all.every(({ state }) => state === 'delivered')).toBe(true)
    expect(all.length).toBe(maxEnded + 2)
    for (const { changes } of [reminded, digest])
      expect(changes().filter((change) => change.includes('=a'))).toHaveLength(1)
  })
})

describe('titles of groups', () => {
  it('are sent only to targets with content', async () => {
    const world = await aWorld(inMemory)
    const closed = aRecorder()
    const full = aRecorder({ content: true })
    const process = aProcess(world, { closed: closed.target, full: full.target })
    world.exhausted.add('a')
    const title = 'Error: card 4111'
    // A rule about groups writes the title into the change.
    const records = copyRecords(world.connections[0]!)
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
    await aProcess({ ...world, connections: [titled] }, {}).round()
    await process.send()
    expect(JSON.stringify(full.received)).toContain('4111')
    expect(closed.received).toHaveLength(1)
    expect(JSON.stringify(closed.received)).not.toContain('4111')
  })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import type { Json } from '../../../src/letter/letter.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aServer, closeServers } from '../../observers/notify/a-server.ts'
import { aFolder, expectToFit, hostileText, redrive } from '../run-cli.ts'

const folder = aFolder()
const at = '2026-01-01T00:00:00.000Z'
const alert = {
  name: 'payment-lost',
  severity: 'critical',
  metric: 'exhausted',
  value: 3,
  above: 0,
  queue: 'payments',
  summary: 'exhausted is 3 in queue payments, above 0',
  raisedAt: at,
}
const delivery = {
  target: 'team',
  state: 'failed',
  isDigest: false,
  changes: [{ id: 'x', at, state: 'raised', alert }],
  stillRaised: [],
  createdAt: at,
  dueAt: at,
  attempts: 12,
  answer: 'answered 503: out of order',
}

afterEach(closeServers)

/** A store with a raised alert, its event and a delivery that failed. */
async function aStore(
  name = alert.name,
): Promise<(...args: string[]) => ReturnType<typeof redrive>> {
  const path = join(folder, `${systemClock.id()}.db`)
  const store = sqliteStore({ path })
  await store.open()
  const own = { ...alert, name }
  const records: [string, string, Json][] = [
    ['alert', name, { everyMs: 60_000, change: 'x', sinceMs: 0, alert: own }],
    ['alert-event', 'x', { id: 'x', at, state: 'raised', alert: own, queued: true }],
    [
      'alert-delivery',
      'x.team',
      { ...delivery, changes: [{ id: 'x', at, state: 'raised', alert: own }] },
    ],
  ]
  for (const record of records) await store.records.put(...record)
  await store.close()
  return (...args) => redrive([...args, '--store', `sqlite:${path}`])
}

describe('redrive alerts', () => {
  it('lists raised alerts, their history and their notifications', async () => {
    const run = await aStore()
    const list = (await run('alerts', 'list')).out
    expectToFit(list)
    expect(list).toMatch(/^SEVERITY +SINCE +ALERT +SUMMARY\ncritical +.* ago +payment-lost/)
    const history = (await run('alerts', 'history')).out
    expectToFit(history)
    expect(history).toMatch(/2026-01-01 00:00:00 +raised +payment-lost +exhausted is 3/)
    const deliveries = (await run('alerts', 'deliveries')).out
    expectToFit(deliveries)
    expect(deliveries).toMatch(/team +failed +12 +payment-lost +answered 503/)
    const json = (await run('alerts', 'deliveries', '--json')).out
    expect(JSON.parse(json)).toEqual({ ...delivery, id: 'x.team' })
    expect(JSON.parse((await run('alerts', 'list', '--json')).out)).toEqual(alert)
  })

  it('acknowledges an alert', async () => {
    const run = await aStore()
    const args = ['alerts', 'ack', 'payment-lost', '--by', 'mia', '--note', 'we know']
    expect((await run(...args)).out).toBe('payment-lost is acknowledged.\n')
    expect((await run('alerts', 'list')).out).toMatch(
      /^SEVERITY +SINCE +ALERT +ACKNOWLEDGED BY +SUMMARY\ncritical +.* mia /,
    )
    expect(JSON.parse((await run('alerts', 'list', '--json')).out)).toMatchObject({
      acknowledged: { by: 'mia', note: 'we know' },
    })
    const { exit, err } = await run('alerts', 'ack', 'payment-lots')
    expect(exit).toBe(4)
    expect(err).toContain('there is no raised alert "payment-lots"')
  })

  it('is shown by redrive doctor when a notification failed', async () => {
    const run = await aStore()
    const { out } = await run('doctor')
    expect(out).toContain('notifications: 1 notification failed, the last to team: answered 503')
  })

  it('escapes names', async () => {
    const run = await aStore(hostileText.replace('\u0000', ''))
    for (const what of ['list', 'history', 'deliveries'])
      expectToFit((await run('alerts', what)).out)
  })

  it('prints its help within 80 columns', async () => {
    expectToFit((await redrive(['alerts', '--help'])).out)
    expectToFit((await redrive(['alerts', 'test', '--help'])).out)
  })
})

describe('redrive alerts test', () => {
  it('says what the target answered', async () => {
    const { url, requests } = await aServer(200, 503)
    const file = join(folder, 'alerts.yaml')
    const hook = `{ webhook: { url: '${url}', private: true } }`
    writeFileSync(file, `notify:\n  hook: ${hook}\nbaseUrl: https://redrive.example.com\n`)
    const test = (...args: string[]) => redrive(['alerts', 'test', ...args, '--config', file])
    expect(await test('hook')).toMatchObject({
      out: 'hook (webhook): sent, answered 200: thank you\n',
      exit: 0,
    })
    expect(requests[0]!.body).toMatchObject({
      type: 'alert.test',
      data: { link: 'https://redrive.example.com' },
    })
    const failed = await test('hook', '--json')
    expect(failed.exit).toBe(1)
    expect(JSON.parse(failed.out)).toEqual({
      target: 'hook',
      kind: 'webhook',
      sent: false,
      answer: 'answered 503: thank you',
    })
    expect(await test('hok')).toMatchObject({
      exit: 4,
      err: expect.stringContaining('did you mean hook?'),
    })
  })
})

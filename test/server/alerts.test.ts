import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Target } from '../../src/observers/notify/target.ts'
import type { AlertRule } from '../../src/policy/alert-rule.ts'
import { forbidden } from '../a-queue.ts'
import { aServer, type TestServer } from './a-server.ts'

const alerts: AlertRule[] = [
  { name: 'new', when: { metric: 'new-group' }, severity: 'warning' },
  { name: 'parked', when: { metric: 'parked', above: 0 }, severity: 'warning' },
]
let isUp = true
const team: Target = {
  kind: 'slack',
  send: async () =>
    isUp
      ? { sent: true, answer: 'answered 200: ok' }
      : { sent: false, again: false, answer: 'answered 404: no_team' },
}

describe('alerts over HTTP', () => {
  let server: TestServer

  beforeEach(async () => {
    isUp = true
    server = await aServer({ alerts, notify: { team }, redeliver: false })
    const { dlq, clock } = server
    dlq.start()
    await dlq.enqueue({ type: 'charge-card' }, forbidden())
    await clock.advance(130_000)
  })
  afterEach(async () => {
    await server.close()
    expect(server.errors).toEqual([])
  })

  it('are listed with their history and their notifications', async () => {
    const client = await server.client()
    const [group, parked] = await client.listAlerts()
    expect(group).toMatchObject({ queue: 'charge-card', title: 'Error: Forbidden' })
    expect(parked).toMatchObject({ name: 'parked' })
    const history = await client.listAlertHistory({ limit: 1 })
    expect(history).toMatchObject([{ state: 'raised', alert: {} }])
    const deliveries = await client.listAlertDeliveries()
    expect(deliveries).toMatchObject([
      { target: 'team', state: 'delivered', answer: 'answered 200: ok' },
      { target: 'team', state: 'delivered' },
    ])
    // The target has no content: the title is not in the notification.
    expect(JSON.stringify(deliveries)).not.toContain('Forbidden')
  })

  it('hide titles without payload:read, and queues outside the scope', async () => {
    const viewer = await server.client({ role: 'viewer' })
    const listed = [await viewer.listAlerts(), await viewer.listAlertHistory()]
    expect(JSON.stringify(listed)).not.toContain('Forbidden')
    expect((await viewer.getHealth()).alerts).not.toContainEqual(
      expect.objectContaining({ title: expect.anything() }),
    )
    const other = await server.client({ queues: ['mail'] })
    expect(await other.listAlerts()).toEqual([])
    expect(await other.listAlertHistory()).toEqual([])
    const own = await server.client({ queues: ['charge-card'] })
    expect(await own.listAlerts()).toMatchObject([{ queue: 'charge-card' }])
  })

  it('are acknowledged by callers who see them', async () => {
    const client = await server.client({ name: 'mia', role: 'operator' })
    const { name } = (await client.listAlerts())[0]!
    const other = await server.client({ queues: ['mail'] })
    await expect(other.acknowledgeAlert({ name })).rejects.toMatchObject({
      problem: { code: 'ALERT_NOT_FOUND' },
    })
    expect(await client.acknowledgeAlert({ name, note: 'we know' })).toMatchObject({
      acknowledged: { by: 'mia', note: 'we know' },
    })
    const entries = await server.dlq.audit({ action: 'alert-acknowledge' })
    expect(entries.items[0]).toMatchObject({ actor: 'mia', what: { kind: 'alert', id: name } })
  })

  it('can be tested: the response says what the target answered', async () => {
    const client = await server.client()
    const tested = { target: 'team', kind: 'slack' }
    expect(await client.testAlertTarget({ target: 'team' })).toEqual({
      ...tested,
      sent: true,
      answer: 'answered 200: ok',
    })
    isUp = false
    expect(await client.testAlertTarget({ target: 'team' })).toEqual({
      ...tested,
      sent: false,
      answer: 'answered 404: no_team',
    })
    await expect(client.testAlertTarget({ target: 'constructor' })).rejects.toMatchObject({
      problem: { code: 'TARGET_NOT_FOUND' },
    })
  })
})

import { afterEach, describe, expect, it } from 'vitest'
import { pagerduty } from '../../../src/observers/notify/pagerduty.ts'
import type { Notification } from '../../../src/observers/notify/target.ts'
import { alert, cleared, raised, test } from './a-notification.ts'
import { aServer, closeServers } from './a-server.ts'

afterEach(closeServers)

describe('pagerduty', () => {
  it('triggers an incident and resolves it under the same key', async () => {
    const { url, requests } = await aServer(202, 202)
    const source = 'orders-production'
    const target = pagerduty({ routingKey: 'key', url, source, private: true })
    await target.send(raised)
    await target.send(cleared)
    expect(requests.map(({ body }) => body)).toEqual([
      {
        routing_key: 'key',
        event_action: 'trigger',
        dedup_key: 'orders-production:many-exhausted',
        payload: {
          summary: `many-exhausted: ${alert.summary}`,
          source,
          severity: 'warning',
          timestamp: alert.raisedAt,
          class: 'exhausted',
          component: 'orders',
          custom_details: alert,
        },
        links: [{ href: raised.link, text: 'Redrive' }],
      },
      {
        routing_key: 'key',
        event_action: 'resolve',
        dedup_key: 'orders-production:many-exhausted',
      },
    ])
  })

  it('leaves no incident open after a test', async () => {
    const { url, requests } = await aServer(202, 202)
    const target = pagerduty({ routingKey: 'key', url, private: true })
    expect(await target.send(test)).toMatchObject({ sent: true })
    const actions = requests.map(({ body }) => [body['event_action'], body['dedup_key']])
    expect(actions).toEqual([
      ['trigger', 'redrive:04'],
      ['resolve', 'redrive:04'],
    ])
  })

  it('keeps keys and summaries within the allowed length, and distinguishes long names', async () => {
    const { url, requests } = await aServer()
    const target = pagerduty({ routingKey: 'key', url, private: true })
    for (const end of ['a', 'b']) {
      const name = '\u202e'.repeat(300) + end
      const changes: Notification['changes'] = [{ state: 'raised', alert: { ...alert, name } }]
      await target.send({ ...raised, changes })
    }
    const keys = requests.map(({ body }) => String(body['dedup_key']))
    expect(new Set(keys).size).toBe(2)
    for (const one of keys) expect(one.length).toBeLessThanOrEqual(255)
    const { summary } = requests[0]!.body['payload'] as { summary: string }
    expect(summary.length).toBeLessThanOrEqual(1024)
  })

  it('rejects an empty key', () => {
    expect(() => pagerduty({ routingKey: '' })).toThrow('routingKey')
  })
})

it('rejects an unknown option', () => {
  expect(() => pagerduty({ routingKey: 'k', sources: 'x' } as never)).toThrow(
    'pagerduty options: did you mean "source"?',
  )
})

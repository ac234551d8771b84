import type { Notification } from '../../../src/observers/notify/target.ts'
import type { Alert } from '../../../src/policy/alert-rule.ts'

export const alert: Alert = {
  name: 'many-exhausted',
  severity: 'warning',
  metric: 'exhausted',
  value: 101,
  above: 100,
  queue: 'orders',
  summary: 'exhausted is 101 in queue orders, above 100',
  hint: 'Look at the groups.',
  raisedAt: '2026-01-01T00:00:00.000Z',
}

export const raised: Notification = {
  id: '01.team',
  at: '2026-01-01T00:00:00.000Z',
  kind: 'alert',
  changes: [{ state: 'raised', alert }],
  stillRaised: [],
  link: 'https://redrive.example.com',
}

export const cleared: Notification = {
  ...raised,
  id: '02.team',
  changes: [{ state: 'cleared', alert: { ...alert, clearedAt: '2026-01-01T01:00:00.000Z' } }],
}

export const digest: Notification = {
  ...raised,
  id: '03.team.digest',
  kind: 'digest',
  changes: [
    { state: 'raised', alert },
    { state: 'cleared', alert: { ...alert, name: 'backlog' } },
  ],
  stillRaised: [{ ...alert, name: 'nearly-full' }],
}

export const test: Notification = { ...raised, id: '04', kind: 'test', changes: [] }

/** Strings that try to add headers, format, link, mention or hide. */
export const hostile =
  'a\r\nBcc: eve@example.com\r\n\r\n<!channel> *b* <https://evil.example|ok> & \u202e\u0007'

import type { ForeignLetter } from '../../src/taps/tap.ts'

export function aForeignLetter(more: Partial<ForeignLetter> = {}): ForeignLetter {
  return {
    source: 'orders',
    reason: 'rejected',
    deliveries: 3,
    enqueuedAt: '2026-01-01T00:00:00.000Z',
    failedAt: '2026-01-01T00:05:00.000Z',
    body: Buffer.from('{"order":7}'),
    contentType: 'application/json',
    headers: { tenant: 'acme' },
    messageId: 'm-1',
    origin: { queue: 'orders', exchange: 'shop' },
    ...more,
  }
}

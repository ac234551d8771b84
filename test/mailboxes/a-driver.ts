import type { Delivery, MailboxDriver } from '../../src/mailbox.ts'

/** A delivery of a driver for one test. */
export function aDelivery(changes: Partial<Delivery> = {}): Delivery {
  return {
    id: 'm1',
    bytes: Buffer.from('{"n":1}'),
    contentType: 'application/json',
    headers: {},
    receipt: 'r1',
    deliveries: 1,
    failures: 0,
    enqueuedMs: 0,
    firstReceivedMs: 0,
    ...changes,
  }
}

/** A driver with scripted results, for cases that no real broker produces on demand. */
export function aDriver(changes: Partial<MailboxDriver> = {}): MailboxDriver {
  return {
    name: 'a',
    powers: {
      kind: 'test',
      durable: false,
      shared: false,
      visibility: true,
      extend: true,
      delay: true,
      remembers: true,
      exactDeliveries: true,
      ordered: true,
      exactCount: true,
      purge: true,
      browse: false,
      deduplicates: false,
      maxBodyBytes: 1000,
    },
    open: async () => {},
    close: async () => {},
    send: async () => {},
    receive: async () => [aDelivery()],
    acknowledge: async () => true,
    nack: async () => true,
    extend: async () => true,
    purge: async () => 0,
    count: async () => 0,
    health: async () => ({ ok: true, checks: {}, problems: [] }),
    ...changes,
  }
}

import type { Tenant } from '../../backends/redis/tenant.ts'

export const tenant: Tenant = {
  noun: 'mailbox',
  unavailable: 'MAILBOX_UNAVAILABLE',
  keeps: 'messages',
  page: 'docs/operating/mailboxes/redis.md',
  tooFewReplicas: 'the master has the message',
}

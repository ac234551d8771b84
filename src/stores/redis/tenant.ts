import type { Tenant } from '../../backends/redis/tenant.ts'

export const tenant: Tenant = {
  noun: 'store',
  unavailable: 'STORE_UNAVAILABLE',
  keeps: 'letters',
  page: 'docs/operating/redis.md',
  tooFewReplicas: 'the master has the write, which may be permanent: repeating it is harmless',
}

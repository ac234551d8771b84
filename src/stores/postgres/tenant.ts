import type { Tenant } from '../../backends/postgres/tenant.ts'

export const tenant: Tenant = { noun: 'store', unavailable: 'STORE_UNAVAILABLE' }

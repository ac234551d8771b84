import { describe, expect, it } from 'vitest'
import { addressOf } from '../../../src/backends/redis/address.ts'
import { inspect } from '../../../src/backends/redis/safety.ts'
import type { Tenant } from '../../../src/backends/redis/tenant.ts'
import { RedisConnection } from '../../../src/backends/redis/connection.ts'
import { backend } from '../../servers/servers.ts'

const cluster = backend('redis-cluster')

const tenant: Tenant = {
  noun: 'mailbox',
  unavailable: 'MAILBOX_UNAVAILABLE',
  keeps: 'messages',
  page: 'a page',
  tooFewReplicas: 'the master has it',
}

describe.skipIf(cluster.missing !== undefined)('inspect', () => {
  it('checks the node of a cluster that owns the keys, whichever node was given', async () => {
    const looked = new Set<string>()
    for (let n = 0; n < 12; n++) {
      const [address, limits] = [addressOf(cluster.url), { timeoutMs: 5000, connectMs: 5000 }]
      const connection = new RedisConnection({
        tenant,
        server: { address },
        tag: `{inspected-${n}}`,
        waitReplicas: 0,
        ...limits,
      })
      try {
        looked.add((await inspect(connection)).checks['server']!)
      } finally {
        await connection.close()
      }
    }
    expect(looked.size).toBeGreaterThan(1)
  })
})

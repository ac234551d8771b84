import { describe } from 'vitest'
import type { FaultBackend } from './backends.ts'
import { testLeases } from './leases.ts'
import { testNetwork } from './network.ts'
import { setUpProxiedServer } from './proxied-server.ts'

/** Tests of a store whose connection breaks. They share one server, and wait at the same time. */
export function testConnection(backend: FaultBackend): void {
  const { name, lacks } = backend
  describe.skipIf(lacks)(`the connection to ${name}`, { concurrent: true }, () => {
    const server = setUpProxiedServer(backend)
    testNetwork(name, server)
    testLeases(name, server)
  })
}

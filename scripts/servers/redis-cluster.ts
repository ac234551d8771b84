import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, launch, run, until } from './machine.ts'
import { sendRedisCommand, isRedisReady, lacksRedis, redisCommand } from './redis.ts'
import type { Server } from './server.ts'

const isClusterReady = async (port: number): Promise<boolean> =>
  (await sendRedisCommand(port, 'CLUSTER INFO')).includes('cluster_state:ok')

/** Three masters without replicas: enough for slots, redirects and cross-slot commands. */
export const redisCluster: Server = {
  name: 'redis-cluster',
  variable: 'REDRIVE_TEST_REDIS_CLUSTER_URL',
  ports: [26381, 26382, 26383],
  after: [],
  packages: ['redis-server'],
  lacks: lacksRedis,
  start: ({ folder, log, ports }) =>
    ports.map((port) => {
      const own = join(folder, String(port))
      mkdirSync(own)
      return launch(redisCommand(port, own, { 'cluster-enabled': 'yes' }), log)
    }),
  settle: async ({ ports }) => {
    for (const port of ports)
      await until(`port ${port} did not answer`, () => isRedisReady(port).catch(() => false), 20)
    const nodes = ports.map((port) => `127.0.0.1:${port}`)
    run(findProgram('redis-cli')!, ['--cluster', 'create', ...nodes, '--cluster-yes'])
  },
  stopSignal: 'SIGTERM',
  ready: async (ports) => (await Promise.all(ports.map(isClusterReady))).every(Boolean),
  seconds: 30,
  url: ([port]) => `redis://127.0.0.1:${port}`,
}

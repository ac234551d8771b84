// The private servers. Add a server as a file in this folder and a row here, after its
// dependencies.
import { kafka } from './kafka.ts'
import { nats } from './nats.ts'
import { opensearch } from './opensearch.ts'
import { pgbouncer } from './pgbouncer.ts'
import { postgres } from './postgres.ts'
import { rabbitmq } from './rabbitmq.ts'
import { redisCluster } from './redis-cluster.ts'
import { redis } from './redis.ts'
import type { Server } from './server.ts'

export const servers: readonly Server[] = [
  postgres,
  redis,
  pgbouncer,
  redisCluster,
  opensearch,
  rabbitmq,
  nats,
  kafka,
]

// The private servers. A new one is a file beside this one and a row here, after those that it stands in front of.
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

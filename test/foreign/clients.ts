// The published clients of other systems that `npm run foreign` tests.
import { classPath, fetchJars, lacksJava, type Jars } from '../../scripts/servers/java.ts'
import type { Need } from '../../scripts/servers/install.ts'
import { findProgram } from '../../scripts/servers/machine.ts'

const logging = 'org.slf4j:slf4j-simple:1.7.36'

/** The jars of Java programs. */
export const clients = {
  /** The producer and the consumer of Apache Kafka. */
  kafka: {
    name: 'java-kafka-clients-4.2.1',
    artifacts: ['org.apache.kafka:kafka-clients:4.2.1', logging],
  },
  spring: {
    name: 'java-spring-kafka-4.0.3',
    artifacts: ['org.springframework.kafka:spring-kafka:4.0.3', logging],
  },
  connect: {
    name: 'java-kafka-connect-4.2.1',
    artifacts: [
      'org.apache.kafka:connect-runtime:4.2.1',
      'org.apache.kafka:connect-json:4.2.1',
      logging,
    ],
  },
  rabbitmq: {
    name: 'java-amqp-client-5.27.1',
    artifacts: ['com.rabbitmq:amqp-client:5.27.1', logging],
  },
  nats: { name: 'java-jnats-2.24.0', artifacts: ['io.nats:jnats:2.24.0', logging] },
} satisfies Record<string, Jars>

export type Client = keyof typeof clients

export const classPathOf = (client: Client): string => classPath(clients[client])

/** What must be installed before the programs run. Java needs its compiler to run a source file. */
export const needs: readonly Need[] = Object.values(clients).map((jars) => ({
  name: jars.name,
  packages: ['default-jdk-headless', 'maven'],
  lacks: () => lacksJava(jars) ?? (findProgram('javac') ? undefined : 'the JDK is not installed'),
  fetch: () => fetchJars(jars),
}))

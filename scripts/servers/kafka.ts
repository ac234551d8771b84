import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  classPath,
  fetchJars,
  javaPackages,
  lacksJars,
  lacksJava,
  logging,
  type Jars,
} from './java.ts'
import { dataHome, findProgram, launch, run, type Command } from './machine.ts'
import type { Server } from './server.ts'

/** The newest version that the client supports. */
const version = '4.2.1'
const jars: Jars = {
  name: `kafka-${version}`,
  artifacts: [
    `org.apache.kafka:kafka_2.13:${version}`,
    'org.apache.logging.log4j:log4j-slf4j-impl:2.25.3',
  ],
}

export type KafkaSettings = Readonly<Record<string, string>>

/** One node that is broker and controller, without replicas. */
const settings: KafkaSettings = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
  'auto.create.topics.enable': 'false',
  'offsets.topic.num.partitions': '1',
  'offsets.topic.replication.factor': '1',
  'transaction.state.log.num.partitions': '1',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'share.coordinator.state.topic.num.partitions': '1',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  // Groups rebalance immediately, and silent members may have short timeouts.
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '500',
  'group.consumer.min.heartbeat.interval.ms': '200',
  'group.consumer.heartbeat.interval.ms': '500',
  'group.consumer.min.session.timeout.ms': '500',
  'group.consumer.session.timeout.ms': '6000',
  // After a crash, the broker can register again only after its old session expired.
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '500',
  // The default takes more than a hundred megabytes.
  'log.cleaner.dedupe.buffer.size': '4194304',
}

/** The listeners: for clients, and as a controller. */
const listenerSettings = ([port, controller]: readonly number[]): KafkaSettings => ({
  listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}`,
  'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
  'controller.quorum.voters': `1@127.0.0.1:${controller}`,
})

const defaultPorts = [29092, 29093]

function writeSettings(folder: string): string {
  const all = { ...settings, ...listenerSettings(defaultPorts), 'log.dirs': join(folder, 'data') }
  const file = join(folder, 'server.properties')
  writeFileSync(join(folder, 'log4j2.properties'), logging)
  writeFileSync(
    file,
    Object.entries(all)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  )
  return file
}

const java = (folder: string, main: string): string[] => [
  '-Xmx256m',
  // Halves the start time.
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  `-Dlog4j2.configurationFile=${join(folder, 'log4j2.properties')}`,
  '-cp',
  classPath(jars),
  main,
]

/** A formatted folder of an empty broker, created once per version and then copied. */
function template(): string {
  const ready = join(dataHome(), `kafka-${version}-template`)
  if (existsSync(ready)) return ready
  const raw = `${ready}.${process.pid}`
  rmSync(raw, { recursive: true, force: true })
  mkdirSync(raw)
  const id = Buffer.from('redrive-for-test').toString('base64url')
  const format = ['format', '-t', id, '-c', writeSettings(raw)]
  run(findProgram('java')!, [...java(raw, 'kafka.tools.StorageTool'), ...format])
  try {
    renameSync(raw, ready)
  } catch {
    rmSync(raw, { recursive: true, force: true })
  }
  return ready
}

/** Creates the folder of a new, empty broker. */
export function createBroker(folder: string): void {
  const from = template()
  mkdirSync(folder, { recursive: true })
  cpSync(join(from, 'data'), join(folder, 'data'), { recursive: true })
  writeSettings(folder)
}

export function kafkaCommand(
  ports: readonly number[],
  folder: string,
  more: KafkaSettings = {},
): Command {
  const all = Object.entries({ ...listenerSettings(ports), 'broker.rack': folder, ...more })
  const args = [...java(folder, 'kafka.Kafka'), join(folder, 'server.properties')]
  const own = all.flatMap(([name, value]) => ['--override', `${name}=${value}`])
  return { file: findProgram('java')!, args: [...args, ...own], folder }
}

/**
 * Reads the folder of the broker, which it publishes as its rack; undefined until it accepts
 * writes.
 */
export async function kafkaFolder(port: number): Promise<string | undefined> {
  // Imported lazily: the client is large and rarely needed.
  const { Admin } = await import('@platformatic/kafka')
  const admin = new Admin({
    clientId: 'redrive',
    bootstrapBrokers: [kafkaUrl(port)],
    retries: 0,
    timeout: 5000,
    connectTimeout: 2000,
  })
  try {
    const { brokers } = await admin.metadata({ topics: [] })
    return [...brokers.values()][0]?.rack ?? undefined
  } finally {
    await admin.close()
  }
}

export const lacksKafka = (): string | undefined => lacksJars(jars)

/** Kafka has no URLs: its servers are named by host and port. */
export const kafkaUrl = (port: number): string => `127.0.0.1:${port}`

export const kafka: Server = {
  name: 'kafka',
  variable: 'REDRIVE_TEST_KAFKA_URL',
  ports: defaultPorts,
  after: [],
  packages: javaPackages,
  lacks: () => lacksJava(jars),
  fetch: () => fetchJars(jars),
  start: ({ folder, log, ports }) => {
    createBroker(folder)
    return [launch(kafkaCommand(ports, folder), log)]
  },
  stopSignal: 'SIGTERM',
  ready: async ([port]) => (await kafkaFolder(port!)) !== undefined,
  seconds: 60,
  url: ([port]) => kafkaUrl(port!),
}

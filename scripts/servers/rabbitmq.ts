import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sendMessage, findProgram, launch, signal, until, type Command } from './machine.ts'
import type { Server } from './server.ts'

/** The Debian script in /usr/sbin switches the user; this one does not. */
const program = (): string | undefined => findProgram('rabbitmq-server', ['/usr/lib/rabbitmq/bin'])

export const lacksRabbitmq = (): string | undefined =>
  program() && findProgram('epmd') ? undefined : 'RabbitMQ is not installed'

/** Nodes on one machine need different names, and a node must keep its name. */
export const nodeName = (folder: string): string =>
  `redrive-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`

/** The user guest has all permissions, from this machine only. Memory use is limited. */
const settings = `vm_memory_high_watermark.absolute = 1GB
raft.wal_max_size_bytes = 33554432
`

/** Creates the folder of a new node: no plugins, and a link that identifies its epmd process. */
export function createNode(folder: string): void {
  mkdirSync(join(folder, 'conf.d'), { recursive: true })
  writeFileSync(join(folder, 'rabbitmq.conf'), settings)
  writeFileSync(join(folder, 'advanced.config'), '[].\n')
  writeFileSync(join(folder, 'enabled_plugins'), '[].\n')
  symlinkSync(findProgram('epmd')!, join(folder, 'epmd'))
}

/** The Erlang port mapper (epmd). Each private node has its own, started before the node. */
export const epmdCommand = ([, , register]: readonly number[], folder: string): Command => ({
  file: join(folder, 'epmd'),
  args: ['-address', '127.0.0.1', '-port', String(register)],
  folder,
})

/** Ports: clients, other nodes, epmd. Ignores the RabbitMQ settings of the machine. */
export function rabbitmqCommand(ports: readonly number[], folder: string): Command {
  const [port, others, register] = ports
  const environment = {
    HOME: folder,
    RABBITMQ_NODENAME: `${nodeName(folder)}@localhost`,
    RABBITMQ_CONF_ENV_FILE: join(folder, 'no-variables'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_CONFIG_FILES: join(folder, 'conf.d'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'advanced.config'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_SCHEMA_DIR: join(folder, 'schema'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(folder, 'generated'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(others),
    // The script execs the server instead of staying its parent.
    RABBITMQ_ALLOW_INPUT: '1',
    ERL_EPMD_PORT: String(register),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    // An epmd started by the node would outlive it.
    ERL_FLAGS: '-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}',
  }
  return { file: program()!, args: ['-noinput', '-redrive', folder], folder, environment }
}

/** epmd answers a request for all names with its port. */
const isEpmdReady = async (port: number): Promise<boolean> =>
  (await sendMessage(port, '\0\u0001n')).length >= 4

/** Sends the AMQP header. The answer contains the cluster name, initially the name of the node. */
export const greetRabbitmq = (port: number): Promise<string> =>
  sendMessage(port, 'AMQP\0\0\u0009\u0001')

export const rabbitmqUrl = (port: number): string => `amqp://guest:guest@127.0.0.1:${port}`

export const rabbitmq: Server = {
  name: 'rabbitmq',
  variable: 'REDRIVE_TEST_RABBITMQ_URL',
  ports: [26672, 26673, 26674],
  after: [],
  packages: ['rabbitmq-server'],
  lacks: lacksRabbitmq,
  start: async ({ folder, log, ports }) => {
    createNode(folder)
    const register = launch(epmdCommand(ports, folder), log)
    const answers = (): Promise<boolean> => isEpmdReady(ports[2]!).catch(() => false)
    await until('epmd did not answer', answers, 10).catch((error: unknown) => {
      signal(register, 'SIGKILL')
      throw error
    })
    return [register, launch(rabbitmqCommand(ports, folder), log)]
  },
  stopSignal: 'SIGTERM',
  ready: async ([port]) => (await greetRabbitmq(port!)).includes('cluster_name'),
  seconds: 60,
  url: ([port]) => rabbitmqUrl(port!),
}

import { sendMessage, findProgram, launch, type Command } from './machine.ts'
import type { Server } from './server.ts'

/** Sends one inline command to Redis and returns the first chunk of the answer. */
export const sendRedisCommand = (port: number, command: string): Promise<string> =>
  sendMessage(port, `${command}\r\n`)

export const isRedisReady = async (port: number): Promise<boolean> =>
  (await sendRedisCommand(port, 'PING')).startsWith('+PONG')

/** A setting of redis.conf; settings with several words are lists. */
export type RedisSettings = Readonly<Record<string, string | readonly string[]>>

/** Maximum durability: each write is synced before its reply, and nothing is evicted. */
const durable: RedisSettings = {
  appendonly: 'yes',
  appendfsync: 'always',
  'maxmemory-policy': 'noeviction',
  save: '',
  // Replicas sync immediately, without waiting for further ones.
  'repl-diskless-sync-delay': '0',
  // Keeps the command line unchanged, which identifies the process.
  'set-proc-title': 'no',
}

export function redisCommand(port: number, folder: string, settings: RedisSettings = {}): Command {
  const all = { ...durable, ...settings, bind: '127.0.0.1', port: String(port), dir: folder }
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, ...[value].flat()])
  return { file: findProgram('redis-server')!, args, folder }
}

export const lacksRedis = (): string | undefined =>
  findProgram('redis-server') ? undefined : 'redis-server is not installed'

export const redis: Server = {
  name: 'redis',
  variable: 'REDRIVE_TEST_REDIS_URL',
  ports: [26379],
  after: [],
  packages: ['redis-server'],
  lacks: lacksRedis,
  start: ({ folder, log, ports }) => [launch(redisCommand(ports[0]!, folder), log)],
  stopSignal: 'SIGTERM',
  ready: ([port]) => isRedisReady(port!),
  seconds: 20,
  url: ([port]) => `redis://127.0.0.1:${port}`,
}

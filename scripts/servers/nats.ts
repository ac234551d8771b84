import { findProgram, launch, type Command } from './machine.ts'
import type { Server } from './server.ts'

/** The second port is the HTTP monitoring port. */
export function natsCommand([port, monitor]: readonly number[], folder: string): Command {
  const listen = ['-a', '127.0.0.1', '-p', String(port), '-m', String(monitor)]
  return { file: findProgram('nats-server')!, args: [...listen, '-js', '-sd', folder], folder }
}

/** Requests a path of the monitoring port, such as `healthz`. */
export async function requestNats(monitor: number, path: string): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${monitor}/${path}`, {
    signal: AbortSignal.timeout(5000),
  })
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
  return answer.json()
}

/** The client port opens after the monitoring port. */
export const isNatsReady = async (monitor: number): Promise<boolean> =>
  ((await requestNats(monitor, 'healthz')) as { status: string }).status === 'ok'

export const lacksNats = (): string | undefined =>
  findProgram('nats-server') ? undefined : 'nats-server is not installed'

export const natsUrl = (port: number): string => `nats://127.0.0.1:${port}`

export const nats: Server = {
  name: 'nats',
  variable: 'REDRIVE_TEST_NATS_URL',
  ports: [24222, 24223],
  after: [],
  packages: ['nats-server'],
  lacks: lacksNats,
  start: ({ folder, log, ports }) => [launch(natsCommand(ports, folder), log)],
  stopSignal: 'SIGTERM',
  ready: ([, monitor]) => isNatsReady(monitor!),
  seconds: 20,
  url: ([port]) => natsUrl(port!),
}

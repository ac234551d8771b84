// A proxy before a Kafka broker that drops or delays requests and responses by their API key.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** API keys of the Kafka protocol. */
export const apiKeys = {
  produce: 0,
  metadata: 3,
  offsetFetch: 9,
  joinGroup: 11,
  syncGroup: 14,
  addPartitions: 24,
  endTransaction: 26,
} as const

export interface Lossy {
  readonly url: string
  /** Drops the responses from now on: the broker executes the requests. */
  lose(apiKey: number): void
  /** Drops the requests from now on. */
  stop(apiKey: number): void
  /** Holds back the responses until `release`. */
  hold(apiKey: number): void
  /** How many responses are held back. */
  held(apiKey: number): number
  release(apiKey: number): void
  /** Ends `lose` and `stop`. */
  heal(): void
  /** How many requests and responses were dropped. */
  lost(): number
  close(): void
}

/** Replaces the address of the broker in responses by the address of the proxy. */
export async function lossyProxy(url: string): Promise<Lossy> {
  const [host = '', port = ''] = url.split(':')
  const sockets = new Set<Socket>()
  let losing = -1
  let stopping = -1
  let count = 0
  const holds = new Map<number, (() => void)[]>()
  const encodeAddress = (at: number): Buffer => {
    const bytes = Buffer.alloc(5 + host.length)
    bytes.writeUInt8(host.length + 1)
    bytes.write(host, 1)
    bytes.writeInt32BE(at, 1 + host.length)
    return bytes
  }
  const server = createServer((client) => {
    const broker = connect(Number(port), host)
    const lost = new Set<number>()
    const held = new Map<number, number>()
    for (const socket of [client, broker]) {
      sockets.add(socket.setNoDelay(true))
      socket.on('error', () => {})
    }
    client.on('close', () => broker.destroy())
    broker.on('close', () => client.destroy())
    client.on(
      'data',
      splitFrames((frame) => {
        const apiKey = frame.readInt16BE(4)
        const correlationId = frame.readInt32BE(8)
        if (apiKey === stopping) count += 1
        if (apiKey === losing) lost.add(correlationId)
        if (holds.has(apiKey)) held.set(correlationId, apiKey)
        if (apiKey !== stopping) broker.write(frame)
      }),
    )
    broker.on(
      'data',
      splitFrames((frame) => {
        const correlationId = frame.readInt32BE(4)
        const isLost = lost.delete(correlationId)
        const waiting = holds.get(held.get(correlationId) ?? -1)
        held.delete(correlationId)
        if (isLost) count += 1
        const proxyAddress = encodeAddress((server.address() as AddressInfo).port)
        const brokerAddress = encodeAddress(Number(port))
        for (let at = frame.indexOf(brokerAddress); at >= 0;) {
          proxyAddress.copy(frame, at)
          at = frame.indexOf(brokerAddress, at + 1)
        }
        if (waiting) waiting.push(() => client.write(frame))
        else if (!isLost) client.write(frame)
      }),
    )
  }).listen(0, host)
  await once(server, 'listening')
  return {
    url: `${host}:${(server.address() as AddressInfo).port}`,
    lose: (apiKey) => (losing = apiKey),
    stop: (apiKey) => (stopping = apiKey),
    hold: (apiKey) => holds.set(apiKey, []),
    held: (apiKey) => holds.get(apiKey)?.length ?? 0,
    release: (apiKey) => {
      for (const write of holds.get(apiKey) ?? []) write()
      holds.delete(apiKey)
    },
    heal: () => (losing = stopping = -1),
    lost: () => count,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Splits a stream into Kafka messages, which start with their length. */
function splitFrames(take: (frame: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const end = 4 + rest.readInt32BE(0)
      take(Buffer.from(rest.subarray(0, end)))
      rest = rest.subarray(end)
    }
  }
}

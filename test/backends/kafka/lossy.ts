// A way to a Kafka broker on which answers can get lost, by the kind of what was asked.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Kafka's numbers of what is asked. */
export const asks = {
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
  /** From now on, answers to this are lost: the broker does what it was asked, and nobody hears of it. */
  lose(ask: number): void
  /** From now on, what asks for this does not arrive. */
  stop(ask: number): void
  /** From now on, answers to this wait until it is released. */
  hold(ask: number): void
  /** How many answers wait. */
  held(ask: number): number
  release(ask: number): void
  /** From now on, nothing is lost or stopped. */
  heal(): void
  /** How many were lost or stopped. */
  lost(): number
  close(): void
}

/** Brokers tell where they are; here, they tell that they are behind this way. */
export async function lossyWay(url: string): Promise<Lossy> {
  const [host = '', port = ''] = url.split(':')
  const sockets = new Set<Socket>()
  let losing = -1
  let stopping = -1
  let count = 0
  const holds = new Map<number, (() => void)[]>()
  const where = (at: number): Buffer => {
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
      framed((frame) => {
        const ask = frame.readInt16BE(4)
        if (ask === stopping) count += 1
        if (ask === losing) lost.add(frame.readInt32BE(8))
        if (holds.has(ask)) held.set(frame.readInt32BE(8), ask)
        if (ask !== stopping) broker.write(frame)
      }),
    )
    broker.on(
      'data',
      framed((frame) => {
        const number = frame.readInt32BE(4)
        const isLost = lost.delete(number)
        const holding = holds.get(held.get(number) ?? -1)
        held.delete(number)
        if (isLost) count += 1
        const ours = where((server.address() as AddressInfo).port)
        const theirs = where(Number(port))
        for (let at = frame.indexOf(theirs); at >= 0; at = frame.indexOf(theirs, at + 1))
          ours.copy(frame, at)
        if (holding) holding.push(() => client.write(frame))
        else if (!isLost) client.write(frame)
      }),
    )
  }).listen(0, host)
  await once(server, 'listening')
  return {
    url: `${host}:${(server.address() as AddressInfo).port}`,
    lose: (ask) => (losing = ask),
    stop: (ask) => (stopping = ask),
    hold: (ask) => holds.set(ask, []),
    held: (ask) => holds.get(ask)?.length ?? 0,
    release: (ask) => {
      for (const write of holds.get(ask) ?? []) write()
      holds.delete(ask)
    },
    heal: () => (losing = stopping = -1),
    lost: () => count,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Messages as Kafka writes them: a length, and so many bytes. */
function framed(take: (frame: Buffer) => void): (piece: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (piece) => {
    rest = Buffer.concat([rest, piece])
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const end = 4 + rest.readInt32BE(0)
      take(Buffer.from(rest.subarray(0, end)))
      rest = rest.subarray(end)
    }
  }
}

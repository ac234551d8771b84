// A TCP server that returns what it receives, and a client that can wait for its replies.
import { once } from 'node:events'
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net'

export interface Echo {
  readonly url: string
  /** All received bytes, over all connections. */
  readonly received: () => string
  readonly close: () => void
}

/** `answer` computes the reply to a request. */
export async function createEcho(answer = (request: string): string => request): Promise<Echo> {
  let received = ''
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      received += data.toString()
      socket.write(answer(data.toString()))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: () => received,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export interface Caller {
  readonly send: (text: string) => void
  /** Resolves with all received bytes, once there are this many. */
  readonly receive: (length: number) => Promise<Buffer>
  readonly received: () => Buffer
  /** Resolves when the connection ends: `end`, or the code of the error. */
  readonly ended: Promise<string>
  readonly close: () => void
}

/** Connects, or rejects with the error of the socket. */
export async function call(port: number): Promise<Caller> {
  const socket = createConnection(port, '127.0.0.1')
  let received = Buffer.alloc(0)
  const ended = new Promise<string>((resolve) => {
    socket.once('end', () => resolve('end'))
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
  })
  socket.on('data', (data) => {
    received = Buffer.concat([received, data])
  })
  await once(socket, 'connect')
  return {
    send: (text) => void socket.write(text),
    receive: async (length) => {
      while (received.length < length) await once(socket, 'data')
      return received
    },
    received: () => received,
    ended,
    close: () => void socket.destroy(),
  }
}

// A server that says back what it hears, and a client that can wait for what it says.
import { once } from 'node:events'
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net'

export interface Echo {
  readonly url: string
  /** All that it has heard, over all connections. */
  readonly heard: () => string
  readonly close: () => void
}

/** `answer` makes the reply of a request. */
export async function createEcho(answer = (request: string): string => request): Promise<Echo> {
  let heard = ''
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      heard += data.toString()
      socket.write(answer(data.toString()))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard: () => heard,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export interface Caller {
  readonly say: (text: string) => void
  /** Resolves with all that was heard, once it is this long. */
  readonly hear: (length: number) => Promise<Buffer>
  readonly heard: () => Buffer
  /** Resolves with how the connection ended: `end` in order, or the code of the error. */
  readonly ended: Promise<string>
  readonly close: () => void
}

/** Connects, or rejects with the error of the socket. */
export async function call(port: number): Promise<Caller> {
  const socket = createConnection(port, '127.0.0.1')
  let heard = Buffer.alloc(0)
  const ended = new Promise<string>((resolve) => {
    socket.once('end', () => resolve('end'))
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
  })
  socket.on('data', (data) => {
    heard = Buffer.concat([heard, data])
  })
  await once(socket, 'connect')
  return {
    say: (text) => void socket.write(text),
    hear: async (length) => {
      while (heard.length < length) await once(socket, 'data')
      return heard
    },
    heard: () => heard,
    ended,
    close: () => void socket.destroy(),
  }
}

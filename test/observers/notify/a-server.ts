import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { deferred } from '../../a-queue.ts'

export interface ReceivedRequest {
  path: string
  headers: IncomingHttpHeaders
  text: string
  body: Record<string, unknown>
}

const servers: Server[] = []

/** Closes all servers with their connections. */
export async function closeServers(): Promise<void> {
  const closing = servers.splice(0).map((server) => {
    server.closeAllConnections()
    return new Promise((closed) => server.close(closed))
  })
  await Promise.all(closing)
}

/** A server that answers with these statuses, then with 200. */
export async function aServer(...statuses: (number | RequestListener)[]): Promise<{
  url: string
  requests: ReceivedRequest[]
  arrival: (count: number) => Promise<void>
}> {
  const requests: ReceivedRequest[] = []
  const waiting: { count: number; resolve: () => void }[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => (text += part))
    request.on('end', () => {
      const body = JSON.parse(text) as Record<string, unknown>
      requests.push({ path: request.url!, headers: request.headers, text, body })
      const answer = statuses.shift() ?? 200
      if (typeof answer === 'function') answer(request, response)
      else response.writeHead(answer).end('thank you')
      for (const { count, resolve } of waiting) if (requests.length >= count) resolve()
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const arrival = async (count: number): Promise<void> => {
    const { promise, resolve } = deferred()
    if (requests.length >= count) return
    waiting.push({ count, resolve: resolve })
    await promise
  }
  return { url: `http://127.0.0.1:${port}/hook`, requests, arrival }
}

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Readiness {
  ready: boolean
  /** The JSON of the answer. */
  body: object
}

export interface HealthServer {
  readonly port: number
  /** May be called twice. */
  close(): Promise<void>
}

/**
 * Answers `GET /health/live` with 200 as long as the process answers at all, and `GET
 * /health/ready` with 200 or 503. Every other path is not found. Rejects if the port is not
 * available.
 */
export async function startHealthServer(options: {
  port: number
  host: string
  ready: () => Promise<Readiness>
}): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0]
    if (request.method === 'GET' && path === '/health/live')
      sendJson(response, 200, { status: 'healthy' })
    else if (request.method === 'GET' && path === '/health/ready')
      void options
        .ready()
        .then(({ ready, body }) => sendJson(response, ready ? 200 : 503, body))
        .catch(() =>
          sendJson(response, 503, { status: 'unhealthy', reasons: ['the check failed'] }),
        )
    else sendJson(response, 404, { status: 'not found' })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
  })
  response.end(text)
}

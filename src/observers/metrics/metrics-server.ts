import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { metricsContentType } from './metrics.ts'

export interface MetricsServerOptions {
  /** 0: any free port. */
  port: number
  /** Default: 127.0.0.1. Everybody who reaches the address can read the metrics. */
  host?: string
  text: () => Promise<string>
}

export interface MetricsServer extends AsyncDisposable {
  readonly port: number
  /** May be called twice. */
  close(): Promise<void>
}

/**
 * Answers `GET /metrics` without a token, for programs without an HTTP server of their own. Every
 * other request is not found. Rejects if the port is not available.
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { port, host = '127.0.0.1', text } = options
  const server = createServer((request, response) => {
    const isMetrics = request.url?.split('?', 1)[0] === '/metrics'
    if (request.method !== 'GET' || !isMetrics) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('not found: GET /metrics\n')
      return
    }
    text().then(
      (metrics) =>
        response
          .writeHead(200, { 'content-type': metricsContentType, 'cache-control': 'no-store' })
          .end(metrics),
      () =>
        response
          .writeHead(500, { 'content-type': 'text/plain' })
          .end('the metrics failed: see the log\n'),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  const { port: listening } = server.address() as AddressInfo
  return { port: listening, close, [Symbol.asyncDispose]: close }
}

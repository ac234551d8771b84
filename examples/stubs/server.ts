import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** The outcome of a request: success, an error status, no answer, or a broken connection. */
export type Outcome = 'ok' | { status: number; retryAfterSeconds?: number } | 'hang' | 'reset'

export interface Stub {
  url: string
  /** Sets the outcomes of the next requests, in order; later requests succeed. */
  next(...outcomes: Outcome[]): void
  close(): Promise<void>
}

/** Computes the answer of a successful request. */
export type Answer = (method: string, path: string, body: unknown) => unknown

/** A local server that simulates a remote one, including its failures. */
export async function startStub(answer: Answer): Promise<Stub> {
  const outcomes: Outcome[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const outcome = outcomes.shift() ?? 'ok'
    const sent = await text(request)
    const { method = 'GET', url = '/' } = request
    const respond = (): string =>
      JSON.stringify(answer(method, url, sent === '' ? undefined : JSON.parse(sent)))
    if (outcome === 'ok') response.end(respond())
    else if (outcome === 'reset') request.socket.resetAndDestroy()
    // The worst case: the work is done, but the answer is lost.
    else if (outcome === 'hang') respond()
    else {
      if (outcome.retryAfterSeconds !== undefined)
        response.setHeader('retry-after', outcome.retryAfterSeconds)
      response.writeHead(outcome.status).end()
    }
  }
  const server = createServer((request, response) => void serve(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: (...more) => void outcomes.push(...more),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

/**
 * Calls a stub like the real service: an error status becomes an error with its status and headers.
 */
export async function request(url: string, signal: AbortSignal, body?: unknown): Promise<unknown> {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(url, { ...sent, signal })
  const { ok, status, headers } = response
  if (!ok) throw Object.assign(new Error(`HTTP ${status}`), { status, headers })
  return response.json()
}

/** Prints the result of a run. */
export async function logRun<T>(attempt: number, run: () => Promise<T>): Promise<T> {
  try {
    const result = await run()
    console.log(`  run ${attempt}: ok`)
    return result
  } catch (error) {
    console.log(`  run ${attempt}: ${String(error)}`)
    throw error
  }
}

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** How a request goes: well, or with an answer of this status, with no answer, or with a connection that breaks. */
export type Fate = 'well' | { status: number; retryAfterSeconds?: number } | 'hang' | 'reset'

export interface Stub {
  url: string
  /** The next requests go like this, one after the other; those after them go well. */
  next(...fates: Fate[]): void
  close(): Promise<void>
}

/** What a stub is asked, and what it answers when all is well. */
export type Answer = (method: string, path: string, body: unknown) => unknown

/** A server on this machine that stands in for one elsewhere, and has its bad moments. */
export async function startStub(answer: Answer): Promise<Stub> {
  const fates: Fate[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const fate = fates.shift() ?? 'well'
    const sent = await text(request)
    const { method = 'GET', url = '/' } = request
    const good = (): string =>
      JSON.stringify(answer(method, url, sent === '' ? undefined : JSON.parse(sent)))
    if (fate === 'well') response.end(good())
    else if (fate === 'reset') request.socket.resetAndDestroy()
    // The worst of all: the work is done, and nobody hears of it.
    else if (fate === 'hang') good()
    else {
      if (fate.retryAfterSeconds !== undefined)
        response.setHeader('retry-after', fate.retryAfterSeconds)
      response.writeHead(fate.status).end()
    }
  }
  const server = createServer((request, response) => void serve(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: (...more) => void fates.push(...more),
    close: async () => {
      server.closeAllConnections()
      await new Promise((tell) => void server.close(tell))
    },
  }
}

/** Asks a stub as one would ask the real thing: an answer that is not good is an error with its status and headers. */
export async function ask(url: string, signal: AbortSignal, body?: unknown): Promise<unknown> {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(url, { ...sent, signal })
  const { ok, status, headers } = response
  if (!ok) throw Object.assign(new Error(`HTTP ${status}`), { status, headers })
  return response.json()
}

/** Prints how a run went. */
export async function told<T>(attempt: number, run: () => Promise<T>): Promise<T> {
  try {
    const result = await run()
    console.log(`  run ${attempt}: well`)
    return result
  } catch (error) {
    console.log(`  run ${attempt}: ${String(error)}`)
    throw error
  }
}

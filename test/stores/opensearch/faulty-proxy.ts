import { once } from 'node:events'
import {
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * What the proxy does with a request: `pass` forwards it, a number rejects it with that status,
 * `cut` closes the connection before the request is forwarded, `lose` closes the connection after
 * the request was executed, and `hang` never responds.
 */
export type ProxyAction = 'pass' | number | 'cut' | 'lose' | 'hang'

/** A small HTTP proxy to the real server that can reject, cut off or delay requests. */
export class FaultyProxy {
  readonly #target: string
  readonly #server: Server
  /** Returns the action for each request, by its number from 1. */
  actionFor: (count: number, path: string) => ProxyAction | Promise<ProxyAction> = () => 'pass'
  /** The number of requests so far. */
  count = 0

  constructor(target: string) {
    this.#target = target
    this.#server = createServer((request, response) => void this.#handle(request, response))
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.count += 1
    const pendingAction = this.actionFor(this.count, request.url!)
    const requestBody = await readBody(request)
    const action = await pendingAction
    if (action === 'hang') return
    if (action === 'cut') return void request.socket.destroy()
    if (typeof action === 'number') {
      response.writeHead(action, { 'content-type': 'application/json' })
      return void response.end('{"error":{"type":"busy","reason":"rejected by the proxy"}}')
    }
    const { statusCode, headers, body } = await this.#forward(request, requestBody)
    if (action === 'lose') return void request.socket.destroy()
    response.writeHead(statusCode, headers)
    response.end(body)
  }

  async #forward(
    { method, url, headers }: IncomingMessage,
    body: Buffer,
  ): Promise<{ statusCode: number; headers: IncomingMessage['headers']; body: Buffer }> {
    const forwarded = request(new URL(url!, this.#target), {
      ...(method ? { method } : {}),
      headers,
    })
    forwarded.end(body)
    const [response] = (await once(forwarded, 'response')) as [IncomingMessage]
    return {
      statusCode: response.statusCode!,
      headers: response.headers,
      body: await readBody(response),
    }
  }
}

async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

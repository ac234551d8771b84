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
 * What happens to a request: it passes, is rejected with a status, is cut off before or after it
 * was executed, or hangs.
 */
export type Fate = 'pass' | number | 'cut' | 'lose' | 'hang'

/** A small HTTP proxy in front of the real server that can interfere. */
export class Front {
  readonly #target: string
  readonly #server: Server
  /** Decides about each request, by its number from 1. */
  fate: (count: number, path: string) => Fate | Promise<Fate> = () => 'pass'
  count = 0

  constructor(target: string) {
    this.#target = target
    this.#server = createServer((request, answer) => void this.#handle(request, answer))
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

  async #handle(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    this.count += 1
    const deciding = this.fate(this.count, request.url!)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const fate = await deciding
    if (fate === 'hang') return
    if (fate === 'cut') return void request.socket.destroy()
    if (typeof fate === 'number') {
      answer.writeHead(fate, { 'content-type': 'application/json' })
      return void answer.end('{"error":{"type":"busy","reason":"in the way"}}')
    }
    const { statusCode, headers, body } = await this.#forward(request, Buffer.concat(chunks))
    if (fate === 'lose') return void request.socket.destroy()
    answer.writeHead(statusCode, headers)
    answer.end(body)
  }

  async #forward(
    { method, url, headers }: IncomingMessage,
    body: Buffer,
  ): Promise<{ statusCode: number; headers: IncomingMessage['headers']; body: Buffer }> {
    const onward = request(new URL(url!, this.#target), { ...(method ? { method } : {}), headers })
    onward.end(body)
    const [answer] = (await once(onward, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    return {
      statusCode: answer.statusCode!,
      headers: answer.headers,
      body: Buffer.concat(chunks),
    }
  }
}

import { Agent, request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'

export interface HttpResponse {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

export interface HttpRequest {
  method: 'GET' | 'POST'
  path: string
  body?: string | Buffer
  headers?: Record<string, string>
}

/** Sends requests over connections that stay open, one request at a time on each. */
export interface HttpClient {
  send(one: HttpRequest): Promise<HttpResponse>
  /** The response as a stream, whose body the caller reads. */
  open(one: HttpRequest & { lines?: AsyncIterable<string> }): Promise<IncomingMessage>
  close(): void
}

/** `fetch` takes several times as long for each request, which would be measured as well. */
export function httpClient(url: string, token: string, connections: number): HttpClient {
  const { hostname, port } = new URL(url)
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const authorization = `Bearer ${token}`
  const open: HttpClient['open'] = ({ method, path, body, headers, lines }) =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
      const sent = request(
        {
          agent,
          hostname,
          port,
          method,
          path,
          headers: { authorization, 'content-type': 'application/json', ...length, ...headers },
        },
        resolve,
      )
      sent.once('error', reject)
      if (lines) sendLines(lines, sent).catch(reject)
      else sent.end(body)
    })
  return {
    open,
    send: async (one) => {
      const response = await open(one)
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      const { statusCode, headers } = response
      return { status: statusCode!, headers, body: Buffer.concat(chunks).toString() }
    },
    close: () => agent.destroy(),
  }
}

async function sendLines(
  lines: AsyncIterable<string>,
  sent: ReturnType<typeof request>,
): Promise<void> {
  for await (const line of lines)
    if (!sent.write(line)) await new Promise((resolve) => sent.once('drain', resolve))
  sent.end()
}

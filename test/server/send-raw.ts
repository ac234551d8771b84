import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'

export interface RawResponse {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/** Sends a request exactly as given: fetch would normalize its path and its headers. */
export function sendRaw(
  url: string,
  method: string,
  path: string,
  options: { body?: string | Buffer; headers?: Record<string, string | string[]> } = {},
): Promise<RawResponse> {
  const { body, headers = {} } = options
  const { hostname: host, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host, port, method, path, headers }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(parts).toString(),
        }),
      )
    })
    request.on('error', reject)
    request.end(body)
  })
}

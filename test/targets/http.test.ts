import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { httpHandler, targetProblem, type HttpTarget } from '../../src/targets/http.ts'
import { toFailure } from '../../src/letter/failure.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { classifyFailure } from '../../src/policy/classify.ts'
import { verifySignature } from '../../src/backends/http/signature.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { aRun } from './a-run.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

interface ReceivedRequest {
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: Buffer
}

let answer: Answer
const requests: ReceivedRequest[] = []

const server = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const { method, url, headers } = request
    requests.push({ method, url, headers, body: Buffer.concat(parts) })
    answer(request, response)
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const url = `http://127.0.0.1:${port}/redrive?x=1`

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  requests.length = 0
  answer = (_, response) => response.writeHead(204).end()
})

const handler = (target: Partial<HttpTarget> = {}, clock = systemClock) =>
  httpHandler({ url, private: true, ...target }, clock)

/** The failure of a run and its category. */
async function failureOf(running: unknown) {
  const thrown: unknown = await Promise.resolve(running).then(
    () => {
      throw new Error('it did not fail')
    },
    (error: unknown) => error,
  )
  const failure = toFailure(thrown, toTimestamp(0))
  return { ...failure, category: classifyFailure(failure, thrown).category }
}

function respond(status: number, body = '', headers: Record<string, string> = {}): void {
  answer = (_, response) => response.writeHead(status, headers).end(body)
}

describe('httpHandler', () => {
  it('posts the bytes of the payload, with the facts about the letter in headers', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const { run } = aRun({ order: 42 }, { queue: 'charge-card', traceparent })
    await handler({ headers: { 'x-team': 'payments' } })(run)
    expect(requests).toHaveLength(1)
    expect(requests[0]).toMatchObject({ method: 'POST', url: '/redrive?x=1' })
    expect(requests[0]!.body.toString()).toBe('{"order":42}')
    expect(requests[0]!.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': '12',
      'redrive-id': run.letter.id,
      'redrive-queue': 'charge-card',
      'redrive-attempt': '2',
      'idempotency-key': `${run.letter.id}:0`,
      traceparent,
      'x-team': 'payments',
    })
    expect(requests[0]!.headers).not.toHaveProperty('redrive-signature')
  })

  it('signs the body when there is a secret', async () => {
    const secret = 'shared by both sides'
    const { run } = aRun(new Uint8Array([0, 255, 13, 10]))
    await handler({ secret })(run)
    const { headers, body } = requests[0]!
    const signature = headers['redrive-signature'] as string
    expect(verifySignature(signature, body, secret, systemClock.now())).toBe(true)
    expect(verifySignature(signature, body, 'another', systemClock.now())).toBe(false)
  })

  it('sanitizes values of a letter in headers', async () => {
    const { run } = aRun('x', { queue: 'Größe 100%\u2028', traceparent: 'x\r\ny: z' })
    run.letter.payload.contentType = 'text/plain\r\nx-evil: 1'
    await handler()(run)
    const { headers } = requests[0]!
    expect(decodeURIComponent(headers['redrive-queue'] as string)).toBe('Größe 100%\u2028')
    expect(headers['content-type']).toBe('application/octet-stream')
    expect(headers).not.toHaveProperty('traceparent')
    expect(headers).not.toHaveProperty('x-evil')
  })

  it('treats a 2xx as success, whatever its body', async () => {
    for (const body of ['', 'ok', '{"ok": true}', '{broken', '[]', 'null']) {
      respond(200, body)
      expect(await handler()(aRun(1).run)).toBeUndefined()
    }
  })

  it('treats a 2xx with "ok": false as a failure', async () => {
    respond(200, '{"ok": false, "error": {"message": "card declined", "code": "DECLINED"}}')
    expect(await handler()(aRun(1).run)).toEqual({
      ok: false,
      error: { message: 'card declined', code: 'DECLINED' },
    })
    respond(200, '{"ok": false}')
    expect(await handler()(aRun(1).run)).toMatchObject({
      ok: false,
      error: expect.any(Error) as Error,
    })
  })

  it('reads at most 64 KiB of a response', async () => {
    let written = 0
    answer = (_, response) => {
      response.writeHead(200)
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024))) written += 64 * 1024
      }
      response.on('drain', more)
      more()
    }
    expect(await handler()(aRun(1).run)).toBeUndefined()
    expect(written).toBeLessThan(64 * 1024 * 1024)
  })

  it.each<[number, string]>([
    [400, 'validation'],
    [401, 'permission'],
    [404, 'permanent'],
    [408, 'timeout'],
    [429, 'rate-limit'],
    [500, 'dependency'],
    [503, 'dependency'],
  ])('classifies the status %i as %s', async (status, category) => {
    respond(status, 'what went wrong')
    const failure = await failureOf(handler()(aRun(1).run))
    expect(failure).toMatchObject({ status, category })
    expect(failure.message).toBe(`127.0.0.1:${port} answered ${status}: what went wrong`)
  })

  it('passes on Retry-After', async () => {
    respond(429, '', { 'retry-after': '7' })
    expect(await failureOf(handler()(aRun(1).run))).toMatchObject({
      category: 'rate-limit',
      retryAfterMs: 7000,
    })
  })

  it('quotes the beginning of a response in one line', async () => {
    respond(500, `a\r\n${'b'.repeat(5000)}`)
    const { message } = await failureOf(handler()(aRun(1).run))
    expect(message.length).toBeLessThan(400)
    expect(message).not.toMatch(/[\r\n]/)
  })

  it('never follows a redirect', async () => {
    respond(302, '', { location: `http://127.0.0.1:${port}/elsewhere` })
    const failure = await failureOf(handler()(aRun(1).run))
    expect(failure).toMatchObject({ status: 302, category: 'permanent' })
    expect(failure.message).toContain('redirects are not supported')
    expect(requests).toHaveLength(1)
  })

  it('ends a request when the run is aborted', async () => {
    const { run, abort } = aRun(1)
    let closed: Promise<unknown> | undefined
    answer = (request) => {
      closed = once(request.socket, 'close')
      abort(new Error('the time is up'))
    }
    await expect(handler()(run)).rejects.toThrow()
    await closed
    await expect(handler()(run)).rejects.toThrow('the time is up')
    expect(requests).toHaveLength(1)
  })

  it('times out after timeoutMs', async () => {
    const clock = fakeClock()
    answer = () => void clock.advance(5000)
    const failure = await failureOf(handler({ timeoutMs: 5000 }, clock)(aRun(1).run))
    expect(failure).toMatchObject({ name: 'TimeoutError', category: 'timeout' })
  })

  it('fails when the server closes the connection', async () => {
    answer = (request) => request.socket.destroy()
    expect(await failureOf(handler()(aRun(1).run))).toMatchObject({ category: 'network' })
    answer = (request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{', () => request.socket.destroy())
    }
    expect(await failureOf(handler()(aRun(1).run))).toMatchObject({ category: 'network' })
  })

  it.each([
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
    ['not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['too many headers', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['an invalid status', 'HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n'],
  ])('fails when the response is %s', async (_, raw) => {
    const other = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.write(raw))
    })
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    const at = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`
    expect(await failureOf(handler({ url: at })(aRun(1).run))).toHaveProperty('name')
    other.close()
  })

  it('does not call a host name that resolves to a private address', async () => {
    const failure = await failureOf(
      handler({ url: `http://localhost:${port}/`, private: false })(aRun(1).run),
    )
    expect(failure).toMatchObject({ code: 'EACCES', category: 'permission' })
    expect(failure.message).toMatch(/of localhost is private/)
    expect(requests).toHaveLength(0)
  })

  it('calls a private address if that is allowed', async () => {
    await handler({ url: `http://localhost:${port}/` })(aRun(1).run)
    expect(requests).toHaveLength(1)
  })

  it('rejects an invalid target', () => {
    expect(() => handler({ private: false })).toThrow(
      expect.objectContaining({ code: 'INVALID_CONFIG' }) as Error,
    )
  })
})

describe('targetProblem', () => {
  it.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://[::1]/',
    'http://[::ffff:7f00:1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://192.168.0.1:8080/',
  ])('finds the private address in %s', (url) => {
    expect(targetProblem({ url })?.text).toContain('private: true')
    expect(targetProblem({ url, private: true })).toBeUndefined()
  })

  it.each([
    'ftp://example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    'javascript:alert(1)',
    'example.com',
    '//example.com',
    'https://user@example.com/',
    'https://user:pw@example.com/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/',
    'http://0.0.0.0/',
    'http://0/',
    'http://[::]/',
  ])('rejects %s even if private addresses are allowed', (url) => {
    const problem = targetProblem({ url, private: true })
    expect(problem?.path).toEqual(['url'])
    expect(problem?.text).not.toContain('pw')
  })

  it.each([
    'Host',
    'redrive-id',
    'Redrive-Anything',
    'Idempotency-Key',
    'content-length',
    'Transfer-Encoding',
    'connection',
    'proxy-authorization',
    'a b',
    'a\r\nb',
    '',
  ])('rejects the header %j', (name) => {
    expect(targetProblem({ url: 'https://example.com/', headers: { [name]: 'x' } })).toMatchObject({
      path: ['headers', name],
    })
  })

  it('accepts a public URL and headers without line breaks', () => {
    const url = 'https://example.com:8443/a?b=c'
    expect(targetProblem({ url, headers: { authorization: 'Bearer x' } })).toBeUndefined()
    expect(targetProblem({ url, headers: { x: 'a\r\nb: c' } })).toBeDefined()
  })
})

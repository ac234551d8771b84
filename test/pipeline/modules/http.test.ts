import { create } from '@bufbuild/protobuf'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { errorTypeOf, type ErrorType } from '../../../src/pipeline/error-type.ts'
import type { ModuleCall } from '../../../src/pipeline/modules/module.ts'
import { httpModule, type HttpModuleOptions } from '../../../src/pipeline/modules/http.ts'
import { DocumentSchema } from '../../../src/pipeline/proto/redrive/pipeline/v1/stream_pb.ts'
import { aStream } from '../../../src/pipeline/stream.ts'

interface Got {
  method: string | undefined
  headers: IncomingMessage['headers']
  body: Buffer
}

let answer: (response: ServerResponse) => void
const got: Got[] = []

const server = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const { method, headers } = request
    got.push({ method, headers, body: Buffer.concat(parts) })
    answer(response)
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/parse`

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  got.length = 0
  answer = (response) => response.writeHead(204).end()
})

const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const aCall = (more: Partial<ModuleCall> = {}): ModuleCall => ({
  stream: aStream({ streamId: 's1', metadata: { traceId: trace } }),
  document: create(DocumentSchema, {
    id: 'd1',
    body: Buffer.from([0, 255]),
    contentType: 'application/pdf',
    attributes: { lang: 'de' },
  }),
  node: 'parser',
  attempt: 2,
  signal: new AbortController().signal,
  ...more,
})

const call = (more: Partial<ModuleCall> = {}, options: Partial<HttpModuleOptions> = {}) =>
  Promise.resolve(httpModule({ url, ...options })(aCall(more)))

async function failureOf(calling: Promise<unknown>): Promise<ErrorType> {
  const failed = await calling.then(
    () => undefined,
    (error: unknown) => errorTypeOf(error),
  )
  if (!failed) throw new Error('it did not fail')
  return failed
}

describe('httpModule', () => {
  it('posts the body unchanged, with its context', async () => {
    await call()
    expect(got[0]!.method).toBe('POST')
    expect(got[0]!.body).toEqual(Buffer.from([0, 255]))
    expect(got[0]!.headers).toMatchObject({
      'content-type': 'application/pdf',
      'content-length': '2',
      'redrive-stream-id': 's1',
      'redrive-node': 'parser',
      'redrive-attempt': '2',
      traceparent: trace,
    })
  })

  it('sends configured headers, which do not replace ours', async () => {
    await call({}, { headers: { authorization: 'Bearer x', 'redrive-node': 'other' } })
    expect(got[0]!.headers).toMatchObject({ authorization: 'Bearer x', 'redrive-node': 'parser' })
  })

  it('encodes ids that no header can carry', async () => {
    const stream = aStream({ streamId: 'ü\r\nx: y', metadata: { traceId: 'not-one' } })
    await call({ stream, document: undefined })
    expect(got[0]!.headers['redrive-stream-id']).toBe('%C3%BC%0D%0Ax: y')
    expect(got[0]!.headers.traceparent).toBeUndefined()
    expect(got[0]!.body).toHaveLength(0)
  })

  it('returns the body of a 2xx as the new document, with the id and attributes of the old one', async () => {
    answer = (response) =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end(Buffer.from([1, 2, 254]))
    expect(await call()).toEqual({
      success: true,
      document: {
        id: 'd1',
        attributes: { lang: 'de' },
        contentType: 'text/plain',
        body: Buffer.from([1, 2, 254]),
      },
    })
  })

  it.each([200, 202, 204])('keeps the document for a %i without a body', async (status) => {
    answer = (response) => response.writeHead(status).end()
    expect(await call()).toEqual({ success: true })
  })

  it.each([
    ['no text in it', 'no text in it'],
    ['{"error": "no text in it"}', 'no text in it'],
    ['{"other": 1}', '{"other": 1}'],
    ['', 'the module answered 422'],
    ['x'.repeat(5000), 'x'.repeat(2000)],
  ])('treats a 422 as a logical failure', async (body, error) => {
    answer = (response) => response.writeHead(422).end(body)
    expect(await call()).toEqual({ success: false, error })
  })

  it.each([
    [503, 'MODULE_UNAVAILABLE', true],
    [429, 'RESOURCE_EXHAUSTED', true],
    [500, 'HTTP_500', true],
    [400, 'INVALID_ARGUMENT', false],
    [404, 'NOT_FOUND', false],
  ])('rejects a %i with its error type', async (status, errorType, retry) => {
    answer = (response) => response.writeHead(status, { 'retry-after': '3' }).end('sorry')
    expect(await failureOf(call())).toMatchObject({
      errorType,
      retry,
      retryAfterMs: 3000,
      failure: { status, message: expect.stringContaining('sorry') as string },
    })
  })

  it('follows no redirect', async () => {
    answer = (response) => response.writeHead(307, { location: url }).end()
    expect(await failureOf(call())).toMatchObject({ failure: { status: 307 } })
    expect(got).toHaveLength(1)
  })

  it('rejects a document above the size limit', async () => {
    answer = (response) => response.end(Buffer.alloc(1001))
    const { failure, retry } = await failureOf(call({}, { maxBytes: 1000 }))
    expect(failure.code).toBe('TOO_LARGE')
    expect(retry).toBe(false)
    answer = (response) => response.end(Buffer.alloc(1000))
    expect(await call({}, { maxBytes: 1000 })).toMatchObject({ success: true })
  })

  it('rejects a compressed document', async () => {
    answer = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x')
    expect((await failureOf(call())).failure.code).toBe('UNDECODABLE')
  })

  it('reports a refused connection', async () => {
    const closed = createTcpServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    const failed = await failureOf(call({}, { url: `http://127.0.0.1:${port}/` }))
    expect(failed).toMatchObject({ errorType: 'CONNECTION_REFUSED', retry: true })
  })

  it('reports a connection that breaks in the middle of a document', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => response.socket!.destroy())
    }
    expect(await failureOf(call())).toMatchObject({ errorType: 'MODULE_UNAVAILABLE', retry: true })
  })

  it('aborts a module that hangs with its signal, and reports the reason', async () => {
    const late = new DOMException('too late', 'TimeoutError')
    const timing = new AbortController()
    answer = () => timing.abort(late)
    await expect(call({ signal: timing.signal })).rejects.toBe(late)
    expect(errorTypeOf(late)).toMatchObject({ errorType: 'TIMEOUT', retry: true })
  })

  it('makes no call if the signal has already aborted', async () => {
    await expect(call({ signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone')
    expect(got).toHaveLength(0)
  })

  it.each(['ftp://host/', 'nothing', 'http://user:pass@host/', 'http://169.254.169.254/'])(
    'refuses to call %s',
    (url) => {
      expect(() => httpModule({ url })).toThrow(
        expect.objectContaining({ code: 'INVALID_CONFIG' }) as Error,
      )
    },
  )
})

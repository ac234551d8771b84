import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  Metadata,
  Server,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerUnaryCall,
} from '@grpc/grpc-js'
import { once } from 'node:events'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { errorTypeOf, type ErrorType } from '../../../src/pipeline/error-type.ts'
import type { ModuleCall } from '../../../src/pipeline/modules/module.ts'
import {
  grpcModule,
  type GrpcModule,
  type GrpcModuleOptions,
} from '../../../src/pipeline/modules/grpc.ts'
import {
  ProcessRequestSchema,
  ProcessResponseSchema,
  type ProcessRequest,
  type ProcessResponse,
} from '../../../src/pipeline/proto/redrive/pipeline/v1/module_pb.ts'
import { DocumentSchema } from '../../../src/pipeline/proto/redrive/pipeline/v1/stream_pb.ts'
import { aStream } from '../../../src/pipeline/stream.ts'
import { run } from '../../processes.ts'

type Call = ServerUnaryCall<ProcessRequest, ProcessResponse>
type Reply = sendUnaryData<ProcessResponse>

/** A real server with this one method. */
async function aServer(
  answer: (call: Call, reply: Reply) => void,
  port = 0,
): Promise<{ server: Server; port: number }> {
  const server = new Server()
  const method = {
    path: '/redrive.pipeline.v1.PipelineModule/Process',
    requestStream: false,
    responseStream: false,
    requestSerialize: (request: ProcessRequest) =>
      Buffer.from(toBinary(ProcessRequestSchema, request)),
    requestDeserialize: (bytes: Buffer) => fromBinary(ProcessRequestSchema, bytes),
    responseSerialize: (response: ProcessResponse) =>
      Buffer.from(toBinary(ProcessResponseSchema, response)),
    responseDeserialize: (bytes: Buffer) => fromBinary(ProcessResponseSchema, bytes),
  }
  server.addService({ process: method }, { process: answer })
  const bound = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  )
  return { server, port: bound }
}

async function freePort(): Promise<number> {
  const taken = createTcpServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  taken.close()
  await once(taken, 'close')
  return port
}

const aCall = (more: Partial<ModuleCall> = {}): ModuleCall => ({
  stream: aStream({ streamId: 's1', metadata: { traceId: 't1', accountId: 'a1' } }),
  document: create(DocumentSchema, { id: 'd1', body: Buffer.from([0, 255]) }),
  node: 'parser',
  attempt: 2,
  signal: new AbortController().signal,
  ...more,
})

async function failureOf(calling: unknown): Promise<ErrorType> {
  const failed = await Promise.resolve(calling).then(
    () => undefined,
    (error: unknown) => errorTypeOf(error),
  )
  if (!failed) throw new Error('it did not fail')
  return failed
}

describe('grpcModule', () => {
  let answer: (call: Call, reply: Reply) => void
  let port: number
  let server: Server
  const modules: GrpcModule[] = []
  const servers: Server[] = []
  const got: ProcessRequest[] = []

  const opened = async (options: Partial<GrpcModuleOptions> = {}): Promise<GrpcModule> => {
    const address = `127.0.0.1:${port}`
    const module = await grpcModule({ address, timeoutMs: 20_000, ...options })
    modules.push(module)
    return module
  }

  const replying = (response: Parameters<typeof create<typeof ProcessResponseSchema>>[1]): void => {
    answer = (_, reply) => reply(null, create(ProcessResponseSchema, response))
  }

  const refusing = (code: status, details = 'no', metadata = new Metadata()): void => {
    answer = (_, reply) => reply({ code, details, metadata })
  }

  beforeEach(async () => {
    got.length = 0
    replying({ success: true })
    ;({ server, port } = await aServer((call, reply) => {
      got.push(call.request)
      answer(call, reply)
    }))
    servers.push(server)
  })

  afterEach(() => {
    for (const module of modules.splice(0)) module.close()
    for (const server of servers.splice(0)) server.forceShutdown()
  })

  it('sends the document, and its context', async () => {
    const module = await opened()
    await module(aCall())
    expect(got[0]).toMatchObject({
      streamId: 's1',
      nodeId: 'parser',
      attempt: 2,
      metadata: { traceId: 't1', accountId: 'a1' },
      document: { id: 'd1' },
    })
    expect(Buffer.from(got[0]!.document!.body)).toEqual(Buffer.from([0, 255]))
  })

  it('sends a stream without a document', async () => {
    const module = await opened()
    expect(await module(aCall({ document: undefined }))).toEqual({ success: true })
    expect(got[0]!.document).toBeUndefined()
  })

  it('returns the new document', async () => {
    replying({
      success: true,
      document: { id: 'd2', body: Buffer.from('text'), contentType: 'text/plain' },
    })
    const module = await opened()
    const result = await module(aCall())
    expect(result).toMatchObject({
      success: true,
      document: { id: 'd2', contentType: 'text/plain', attributes: {} },
    })
  })

  it('treats success=false as a logical failure', async () => {
    const module = await opened()
    replying({ success: false, errorMessage: 'no text in it' })
    expect(await module(aCall())).toEqual({ success: false, error: 'no text in it' })
    replying({})
    expect(await module(aCall())).toEqual({
      success: false,
      error: 'the module returned success=false',
    })
  })

  it.each([
    [status.UNAVAILABLE, 'UNAVAILABLE', 'MODULE_UNAVAILABLE', true],
    [status.RESOURCE_EXHAUSTED, 'RESOURCE_EXHAUSTED', 'RESOURCE_EXHAUSTED', true],
    [status.INTERNAL, 'INTERNAL', 'INTERNAL', true],
    [status.UNKNOWN, 'UNKNOWN', 'GRPC_ERROR', true],
    [status.INVALID_ARGUMENT, 'INVALID_ARGUMENT', 'INVALID_ARGUMENT', false],
    [status.NOT_FOUND, 'NOT_FOUND', 'NOT_FOUND', false],
    [status.PERMISSION_DENIED, 'PERMISSION_DENIED', 'PERMISSION_DENIED', false],
    [status.UNIMPLEMENTED, 'UNIMPLEMENTED', 'UNIMPLEMENTED', false],
  ])('rejects status %i with the code %s', async (code, name, errorType, retry) => {
    refusing(code)
    const module = await opened()
    expect(await failureOf(module(aCall()))).toMatchObject({
      errorType,
      retry,
      failure: { code: name, message: `${name}: no` },
    })
  })

  it('returns the delay that the module asks for', async () => {
    const metadata = new Metadata()
    metadata.set('grpc-retry-pushback-ms', '1500')
    refusing(status.INTERNAL, 'busy', metadata)
    const module = await opened()
    expect((await failureOf(module(aCall()))).retryAfterMs).toBe(1500)
  })

  it('succeeds when an unavailable module is back', async () => {
    const module = await opened()
    refusing(status.UNAVAILABLE)
    await failureOf(module(aCall()))
    replying({ success: true })
    expect(await module(aCall())).toEqual({ success: true })
  })

  it('reports a refused connection, and connects once the server listens', async () => {
    const port = await freePort()
    const module = await opened({ address: `127.0.0.1:${port}` })
    const failed = await failureOf(module(aCall()))
    expect(failed).toMatchObject({ errorType: 'CONNECTION_REFUSED', retry: true })
    const late = await aServer(
      (_, reply) => reply(null, create(ProcessResponseSchema, { success: true })),
      port,
    )
    servers.push(late.server)
    await expect
      .poll(() => Promise.resolve(module(aCall())).catch(() => undefined))
      .toEqual({ success: true })
  })

  it('cancels the call of a module that hangs at its time limit', async () => {
    const cancelled = new Promise<void>((resolve) => {
      answer = (call) => call.on('cancelled', resolve)
    })
    const module = await opened({ timeoutMs: 200 })
    const failed = await failureOf(module(aCall()))
    expect(failed).toMatchObject({
      errorType: 'TIMEOUT',
      retry: true,
      failure: { code: 'DEADLINE_EXCEEDED' },
    })
    await cancelled
  })

  it('aborts a call with its signal, and reports the reason', async () => {
    const giving = new AbortController()
    const why = new Error('the record is somebody else’s by now')
    const cancelled = new Promise<void>((resolve) => {
      answer = (call) => {
        call.on('cancelled', resolve)
        giving.abort(why)
      }
    })
    const module = await opened()
    await expect(module(aCall({ signal: giving.signal }))).rejects.toBe(why)
    await cancelled
    await expect(module(aCall({ signal: giving.signal }))).rejects.toBe(why)
    expect(got).toHaveLength(1)
  })

  it('rejects a document above the size limit', async () => {
    replying({ success: true, document: { body: Buffer.alloc(2000) } })
    const module = await opened({ maxBytes: 1000 })
    expect(await failureOf(module(aCall()))).toMatchObject({ errorType: 'TOO_LARGE', retry: false })
  })

  it('accepts documents above the usual 4 MiB', async () => {
    const body = Buffer.alloc(6 * 1024 ** 2, 7)
    replying({ success: true, document: { body } })
    const module = await opened()
    const result = await module(aCall())
    expect(result && 'document' in result && result.document?.body).toHaveLength(body.length)
  })

  it('names the package to install if it is missing', async () => {
    // Node itself fails to find it: it runs in an empty folder.
    const program = `
      import { registerHooks } from 'node:module'
      registerHooks({
        resolve: (specifier, context, next) =>
          next(specifier, specifier === '@grpc/grpc-js' ? { ...context, parentURL: 'file:///nowhere/at-all.js' } : context),
      })
      const { grpcModule } = await import(${JSON.stringify(import.meta.resolve('../../../src/pipeline/modules/grpc.ts'))})
      await grpcModule({ address: 'host:1', timeoutMs: 1 }).catch(({ code, message }) => console.log(code, message))
    `
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
    expect(stdout.trim()).toBe(
      'INVALID_CONFIG this module needs the package @grpc/grpc-js: run npm install @grpc/grpc-js',
    )
  })

  it.each(['host', 'http://host:1', 'host:port', 'user@host:1', ''])(
    'rejects the address %j',
    async (address) => {
      await expect(grpcModule({ address, timeoutMs: 1 })).rejects.toMatchObject({
        code: 'INVALID_CONFIG',
      })
    },
  )
})

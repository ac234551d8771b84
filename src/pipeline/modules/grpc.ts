import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { ChannelCredentials, Client, ServiceError } from '@grpc/grpc-js'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { needing } from '../../connect/store.ts'
import { RedriveError } from '../../errors.ts'
import { grpcNames } from '../../policy/rules.ts'
import type { Module, ModuleCall, ModuleResult } from './module.ts'
import {
  ProcessRequestSchema,
  ProcessResponseSchema,
  type ProcessRequest,
  type ProcessResponse,
} from '../proto/redrive/pipeline/v1/module_pb.ts'
import { grpcTarget } from './address.ts'

export interface GrpcModuleOptions {
  /** `host:port`, or `grpcs://host:port` over TLS. */
  address: string
  /** The deadline of a call, which is passed to the module. */
  timeoutMs: number
  /** Custom certificates. */
  credentials?: ChannelCredentials
  /** A larger answer is a failure. Default: 16 MiB. */
  maxBytes?: number
  clock?: Clock
}

/** A module with a connection. */
export type GrpcModule = Module & { close(): void }

const method = '/redrive.pipeline.v1.PipelineModule/Process'

/**
 * A module behind gRPC: `redrive.pipeline.v1.PipelineModule/Process`, once per call. It connects
 * with the first call, and reconnects after a loss. A status rejects, with its name as the code.
 * Requires the package @grpc/grpc-js.
 */
export async function grpcModule(options: GrpcModuleOptions): Promise<GrpcModule> {
  const { timeoutMs, clock = systemClock } = options
  const target = grpcTarget(options.address)
  if (!target)
    throw new RedriveError(
      'INVALID_CONFIG',
      'module.grpc must be host:port, or grpcs://host:port over TLS',
    )
  const { Client, credentials } = await needing(
    '@grpc/grpc-js',
    () => import('@grpc/grpc-js'),
    'module',
  )
  const ours = target.secure ? credentials.createSsl() : credentials.createInsecure()
  const client = new Client(target.host, options.credentials ?? ours, {
    'grpc.max_receive_message_length': options.maxBytes ?? 16 * 1024 ** 2,
    // By default, a module after a long outage would not be called for two minutes.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 2000,
  })
  const module: Module = async (call) => resultOf(await ask(client, call, clock.now() + timeoutMs))
  return Object.assign(module, { close: () => client.close() })
}

function ask(client: Client, call: ModuleCall, deadline: number): Promise<ProcessResponse> {
  const { signal } = call
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const cancel = (): void => running.cancel()
    const running = client.makeUnaryRequest<ProcessRequest, ProcessResponse>(
      method,
      (request) => Buffer.from(toBinary(ProcessRequestSchema, request)),
      (bytes) => fromBinary(ProcessResponseSchema, bytes),
      requestOf(call),
      { deadline },
      (error, response) => {
        signal.removeEventListener('abort', cancel)
        if (!error && response) resolve(response)
        // The reason of the abort says more than the abort itself.
        else if (signal.aborted) reject(signal.reason as Error)
        else reject(error ? errorOf(error) : new Error('the module gave no answer'))
      },
    )
    signal.addEventListener('abort', cancel, { once: true })
  })
}

function requestOf({ stream, document, node, attempt }: ModuleCall): ProcessRequest {
  return create(ProcessRequestSchema, {
    streamId: stream.streamId,
    nodeId: node,
    attempt,
    ...(stream.metadata ? { metadata: stream.metadata } : {}),
    ...(document ? { document } : {}),
  })
}

function resultOf({ success, document, errorMessage }: ProcessResponse): ModuleResult {
  if (!success)
    return { success: false, error: errorMessage || 'the module returned success=false' }
  if (!document) return { success: true }
  const { id, body, contentType, attributes } = document
  return { success: true, document: { id, body, contentType, attributes } }
}

/** Adds the name of the status, and the delay that the module asked for. */
function errorOf({ code, details, metadata, message }: ServiceError): Error {
  const name = grpcNames[code] ?? 'UNKNOWN'
  // Both sides use the status of an overloaded server, but this error is permanent.
  if (name === 'RESOURCE_EXHAUSTED' && /message larger than max/i.test(details))
    return new RedriveError(
      'TOO_LARGE',
      `the request or the answer of the module is too large: ${details}`,
    )
  const error = Object.assign(new Error(`${name}: ${details || message}`), { code: name })
  error.name = 'GrpcError'
  const [pushback] = metadata.get('grpc-retry-pushback-ms')
  const waitMs = Number(pushback)
  return pushback !== undefined && waitMs >= 0
    ? Object.assign(error, { retryAfterMs: waitMs })
    : error
}

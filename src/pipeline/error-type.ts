import { RedriveError } from '../errors.ts'
import { toFailure } from '../letter/failure.ts'
import type { ErrorCategory, Failure } from '../letter/letter.ts'
import { toTimestamp } from '../letter/time.ts'
import { neverAgain } from '../policy/backoff.ts'
import { classifyFailure } from '../policy/classify.ts'
import { layersOf, statusOf } from '../policy/layers.ts'
import { grpcNames } from '../policy/rules.ts'

/** A failure by its `error_type` in a dead record. */
export interface ErrorType {
  errorType: string
  /** Whether another call of the module can help. */
  retry: boolean
  failure: Failure
  /** The delay that the module asked for. */
  retryAfterMs?: number
}

/** Error types by code. Other codes of gRPC are error types themselves. */
const byCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'CONNECTION_REFUSED',
  UNAVAILABLE: 'MODULE_UNAVAILABLE',
  DEADLINE_EXCEEDED: 'TIMEOUT',
  OUT_OF_RANGE: 'INVALID_ARGUMENT',
  FAILED_PRECONDITION: 'INVALID_STATE',
  ERR_INVALID_STATE: 'INVALID_STATE',
  ERR_INVALID_ARG_TYPE: 'INVALID_ARGUMENT',
  ERR_INVALID_ARG_VALUE: 'INVALID_ARGUMENT',
  DOCUMENT_NOT_FOUND: 'DOCUMENT_UNAVAILABLE',
  UNDECODABLE: 'MALFORMED',
}

/** Suffixes of error classes in several languages. */
const byName: readonly (readonly [RegExp, string])[] = [
  [/^(?:Illegal|Invalid)State(?:Error|Exception)?$/, 'INVALID_STATE'],
  [/^(?:Illegal|Invalid)Argument(?:Error|Exception)?$/, 'INVALID_ARGUMENT'],
]

const byStatus: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  404: 'NOT_FOUND',
  409: 'INVALID_STATE',
  410: 'NOT_FOUND',
  412: 'INVALID_STATE',
  502: 'MODULE_UNAVAILABLE',
  503: 'MODULE_UNAVAILABLE',
}

const byCategory: Partial<Record<ErrorCategory, string>> = {
  timeout: 'TIMEOUT',
  network: 'MODULE_UNAVAILABLE',
  'rate-limit': 'RESOURCE_EXHAUSTED',
  resource: 'RESOURCE_EXHAUSTED',
  validation: 'VALIDATION_ERROR',
}

/**
 * The error type of a thrown value: by the codes, classes and statuses of the failure and its
 * causes, otherwise by its category, otherwise by its class. Without the current time, a
 * retry-after date is ignored.
 */
export function errorTypeOf(thrown: unknown, nowMs?: number): ErrorType {
  const failure = toFailure(thrown, nowMs === undefined ? '' : toTimestamp(nowMs))
  const { category } = classifyFailure(failure, thrown)
  const layers = layersOf(failure)
  // Our own errors have a code, and know whether a retry helps.
  const isOurs = thrown instanceof RedriveError
  const errorType =
    first(layers, wordOf) ??
    (isOurs ? thrown.code : byCategory[category]) ??
    first(layers, statusWord) ??
    className(failure)
  const retry = isOurs ? thrown.retryHelps : !neverAgain.has(category)
  const { retryAfterMs } = failure
  return { errorType, retry, failure, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
}

function first(
  layers: readonly Failure[],
  look: (layer: Failure) => string | undefined,
): string | undefined {
  for (const layer of layers) {
    const word = look(layer)
    if (word !== undefined) return word
  }
  return undefined
}

function wordOf(failure: Failure): string | undefined {
  const { name, code = '', message } = failure
  // gRPC reports a refused connection in its message only.
  if (code === 'ECONNREFUSED' || /\bECONNREFUSED\b/.test(message)) return byCode['ECONNREFUSED']
  const grpc = grpcCode(failure)
  if (grpc !== undefined) return byCode[grpc] ?? grpc
  if (Object.hasOwn(byCode, code)) return byCode[code]
  return byName.find(([pattern]) => pattern.test(name))?.[1] ?? byStatus[statusOf(failure) ?? 0]
}

/** UNKNOWN says nothing, and CANCELLED only says that a call was aborted. */
const vague = ['OK', 'CANCELLED', 'UNKNOWN']

function grpcCode({ code = '', message }: Failure): string | undefined {
  const named = message.startsWith(`${code} ${grpcNames[Number(code)]}:`)
  const name = named ? grpcNames[Number(code)] : code
  return name !== undefined && grpcNames.includes(name) && !vague.includes(name) ? name : undefined
}

function statusWord(failure: Failure): string | undefined {
  const status = statusOf(failure)
  return status === undefined ? undefined : `HTTP_${status}`
}

const maxLength = 100

/** TypeError becomes TYPE_ERROR. */
function className({ name }: Failure): string {
  const word = name
    .slice(0, maxLength)
    .replaceAll(/([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, (_, low = '', high = '', run = '') =>
      run === '' ? `${low}_${high}` : `${run}_`,
    )
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
    .toUpperCase()
    .slice(0, maxLength)
  return word === '' ? 'ERROR' : word
}

import type { Problem } from '../api/problem.ts'
import { errorTable, hasCode, RedriveError, type ErrorCode } from '../errors.ts'

/** Errors of fastify and their codes here. */
const codeOfStatus: { [status: number]: ErrorCode } = {
  400: 'INVALID_INPUT',
  404: 'ROUTE_NOT_FOUND',
  408: 'INVALID_INPUT',
  413: 'TOO_LARGE',
  414: 'TOO_LARGE',
  415: 'INVALID_INPUT',
  429: 'TOO_MANY_REQUESTS',
  431: 'TOO_LARGE',
}

/** The letter does not have the version of If-Match. */
export class PreconditionFailed extends Error {}

/** An error whose response has this status. */
export function withStatus(status: 415, message: string): Error {
  return Object.assign(new Error(message), { statusCode: status })
}

/** The sender must wait before it sends again. */
export function tooManyRequests(message: string, waitMs: number): RedriveError {
  return Object.assign(new RedriveError('TOO_MANY_REQUESTS', message), { waitMs })
}

/** The request is what a caller can change, not the configuration of the server. */
export function rethrowAsInput(error: unknown): never {
  if (hasCode(error, 'INVALID_CONFIG')) throw new RedriveError('INVALID_INPUT', error.message)
  throw error
}

/** Seconds for the header Retry-After. */
export function retryAfter(error: unknown): string {
  const { waitMs = 0 } = Object(error) as { waitMs?: number }
  return String(Math.max(1, Math.ceil(waitMs / 1000)))
}

/**
 * The response to an error. The text of an unexpected error stays in the log: it may contain
 * anything.
 */
export function toProblem(error: unknown): Problem {
  if (error instanceof PreconditionFailed)
    return { ...problemOf('VERSION_CONFLICT', error.message), status: 412, retry: false }
  if (error instanceof RedriveError) return problemOf(error.code, error.message)
  const { statusCode, message } = error as { statusCode?: number; message?: string }
  const code = statusCode === undefined ? undefined : codeOfStatus[statusCode]
  if (code !== undefined && statusCode !== undefined)
    return { ...problemOf(code, message ?? 'the request is invalid'), status: statusCode }
  return {
    type: 'about:blank',
    title: 'Internal error',
    status: 500,
    detail: 'the server failed unexpectedly: see its log',
    code: 'INTERNAL',
    retry: true,
  }
}

function problemOf(code: ErrorCode, detail: string): Problem {
  const { status, retry, means } = errorTable[code]
  const title = means.slice(0, means.indexOf('.') + 1)
  return { type: `urn:redrive:error:${code}`, title, status, detail, code, retry }
}

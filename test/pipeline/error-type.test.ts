import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { errorTypeOf } from '../../src/pipeline/error-type.ts'

const error = (more: object, message = 'it failed'): Error =>
  Object.assign(new Error(message), more)
const named = (name: string, message = 'it failed'): Error => error({ name }, message)
const grpc = (code: number, name: string, details = 'no'): Error =>
  error({ code, details }, `${code} ${name}: ${details}`)

describe('errorTypeOf', () => {
  it.each<[what: string, thrown: unknown, errorType: string, retry: boolean]>([
    ['a timeout by its class', named('TimeoutError'), 'TIMEOUT', true],
    ['an aborted signal', new DOMException('late', 'TimeoutError'), 'TIMEOUT', true],
    ['ETIMEDOUT', error({ code: 'ETIMEDOUT' }), 'TIMEOUT', true],
    ['DEADLINE_EXCEEDED', error({ code: 'DEADLINE_EXCEEDED' }), 'TIMEOUT', true],
    ['DEADLINE_EXCEEDED as a number', grpc(4, 'DEADLINE_EXCEEDED'), 'TIMEOUT', true],
    ['504', error({ status: 504 }), 'TIMEOUT', true],
    ['ECONNREFUSED', error({ code: 'ECONNREFUSED' }), 'CONNECTION_REFUSED', true],
    [
      'a refused connection as gRPC tells it',
      grpc(14, 'UNAVAILABLE', 'No connection established. Last error: connect ECONNREFUSED ::1:1'),
      'CONNECTION_REFUSED',
      true,
    ],
    ['UNAVAILABLE', error({ code: 'UNAVAILABLE' }), 'MODULE_UNAVAILABLE', true],
    ['UNAVAILABLE as a number', grpc(14, 'UNAVAILABLE'), 'MODULE_UNAVAILABLE', true],
    ['503', error({ status: 503 }), 'MODULE_UNAVAILABLE', true],
    ['ENOTFOUND', error({ code: 'ENOTFOUND' }), 'MODULE_UNAVAILABLE', true],
    ['ECONNRESET', error({ code: 'ECONNRESET' }), 'MODULE_UNAVAILABLE', true],
    ['RESOURCE_EXHAUSTED', grpc(8, 'RESOURCE_EXHAUSTED'), 'RESOURCE_EXHAUSTED', true],
    ['429', error({ status: 429 }), 'RESOURCE_EXHAUSTED', true],
    ['ENOSPC', error({ code: 'ENOSPC' }), 'RESOURCE_EXHAUSTED', true],
    ['NOT_FOUND', grpc(5, 'NOT_FOUND'), 'NOT_FOUND', false],
    ['404', error({ status: 404 }), 'NOT_FOUND', false],
    ['INVALID_ARGUMENT', grpc(3, 'INVALID_ARGUMENT'), 'INVALID_ARGUMENT', false],
    ['OUT_OF_RANGE', error({ code: 'OUT_OF_RANGE' }), 'INVALID_ARGUMENT', false],
    ['400', error({ status: 400 }), 'INVALID_ARGUMENT', false],
    ['a validation by its class', named('ValidationError'), 'VALIDATION_ERROR', false],
    ['413', error({ status: 413 }), 'VALIDATION_ERROR', false],
    ['FAILED_PRECONDITION', grpc(9, 'FAILED_PRECONDITION'), 'INVALID_STATE', false],
    ['a state by its class', named('InvalidStateError'), 'INVALID_STATE', false],
    ['ERR_INVALID_STATE', error({ code: 'ERR_INVALID_STATE' }), 'INVALID_STATE', false],
    ['PERMISSION_DENIED', grpc(7, 'PERMISSION_DENIED'), 'PERMISSION_DENIED', false],
    ['UNIMPLEMENTED', error({ code: 'UNIMPLEMENTED' }), 'UNIMPLEMENTED', false],
    ['INTERNAL', grpc(13, 'INTERNAL'), 'INTERNAL', true],
    ['401', error({ status: 401 }), 'HTTP_401', false],
    ['500', error({ status: 500 }), 'HTTP_500', true],
    [
      'a document that is gone',
      new RedriveError('DOCUMENT_NOT_FOUND', 'it is not there'),
      'DOCUMENT_UNAVAILABLE',
      false,
    ],
    ['what cannot be decoded', new RedriveError('UNDECODABLE', 'no JSON'), 'MALFORMED', false],
    [
      'a store of ours that is away',
      new RedriveError('STORE_UNAVAILABLE', 'x'),
      'STORE_UNAVAILABLE',
      true,
    ],
    ['a mistake in a program', new TypeError('x is not a function'), 'TYPE_ERROR', false],
    ['a class that nobody knows', named('FooBarXMLGlitch'), 'FOO_BAR_XML_GLITCH', true],
    ['an error without a class', new Error('hm'), 'ERROR', true],
    ['a string', 'hm', 'STRING', true],
    ['nothing', undefined, 'UNDEFINED', true],
    ['a class that is no word', named('__ ü __'), 'ERROR', true],
  ])('has an error type for %s', (_, thrown, errorType, retry) => {
    expect(errorTypeOf(thrown)).toMatchObject({ errorType, retry })
  })

  it.each([
    [
      'a cause',
      new Error('it failed', { cause: error({ code: 'ECONNREFUSED' }) }),
      'CONNECTION_REFUSED',
    ],
    [
      'a cause of a cause',
      new Error('a', { cause: new Error('b', { cause: grpc(14, 'UNAVAILABLE') }) }),
      'MODULE_UNAVAILABLE',
    ],
    [
      'what fetch throws',
      new TypeError('fetch failed', { cause: error({ code: 'ECONNREFUSED' }) }),
      'CONNECTION_REFUSED',
    ],
    [
      'one of several',
      new AggregateError([error({ code: 'ECONNREFUSED' })], 'all failed'),
      'CONNECTION_REFUSED',
    ],
    ['a timeout within', new Error('a', { cause: named('TimeoutError') }), 'TIMEOUT'],
  ])('inspects %s', (_, thrown, errorType) => {
    expect(errorTypeOf(thrown)).toMatchObject({ errorType, retry: true })
  })

  it('returns the delay that the module asks for', () => {
    const seconds = error({ status: 503, headers: { 'retry-after': '7' } })
    expect(errorTypeOf(seconds).retryAfterMs).toBe(7000)
    expect(errorTypeOf(error({ status: 503 })).retryAfterMs).toBeUndefined()
  })

  it('reads a retry-after date only if it knows the time', () => {
    const nowMs = Date.parse('2026-01-01T00:00:00Z')
    const date = error({ status: 503, headers: { 'retry-after': 'Thu, 01 Jan 2026 00:00:05 GMT' } })
    expect(errorTypeOf(date, nowMs)).toMatchObject({ retryAfterMs: 5000 })
    expect(errorTypeOf(date, nowMs).failure.at).toBe('2026-01-01T00:00:00.000Z')
    expect(errorTypeOf(date).retryAfterMs).toBeUndefined()
  })

  it('respects whether an error itself says that a retry helps', () => {
    expect(errorTypeOf(error({ retryable: true, status: 400 }))).toMatchObject({
      errorType: 'INVALID_ARGUMENT',
      retry: true,
    })
  })

  it('is one word of capitals for any value', () => {
    fc.assert(
      fc.property(fc.anything(), fc.string(), fc.string(), (thing, name, code) => {
        for (const thrown of [thing, error({ name, code, cause: thing })])
          expect(errorTypeOf(thrown).errorType).toMatch(/^[A-Z0-9](?:[A-Z0-9_]{0,99})$/)
      }),
    )
  })
})

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toFailure } from '../../src/letter/failure.ts'
import {
  categories,
  recoverabilities,
  severities,
  type ErrorCategory,
  type Failure,
} from '../../src/letter/letter.ts'
import { classify, classifyFailure, type Rule } from '../../src/policy/classify.ts'

const at = '2025-01-01T00:00:00.000Z'

function failureOf(over: Partial<Failure> = {}): Failure {
  return { name: 'Error', message: '', causes: [], at, ...over }
}

function categoryOf(thrown: unknown): ErrorCategory {
  return classifyFailure(toFailure(thrown, at), thrown).category
}

function named(name: string, message = ''): Error {
  return Object.assign(new Error(message), { name })
}

describe('classify', () => {
  it('classifies anything that was thrown', () => {
    const refused = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' })
    expect(classify(refused)).toMatchObject({ category: 'network' })
    expect(classify(new Error('fetch failed', { cause: refused })).category).toBe('network')
    expect(classify('socket hang up').category).toBe('network')
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    for (const thrown of [undefined, null, 7, Symbol('x'), () => 1, {}, [], revoked.proxy])
      expect(classify(thrown).category).toBe('unknown')
  })

  it('classifies the failure of a letter, with its causes', () => {
    const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED' })
    const failure = toFailure(new Error('no luck', { cause: refused }), at)
    expect(classify(failure).category).toBe('network')
    expect(classify(JSON.parse(JSON.stringify(failure))).category).toBe('network')
  })

  it('does not fail on an object that only looks like a failure', () => {
    const causes: unknown[] = [null]
    expect(classify({ name: 'x', message: 'y', at, causes }).category).toBe('unknown')
    const looped = { name: 'x', message: 'y', at, causes: [] as unknown[] }
    looped.causes.push(looped)
    expect(classify(looped).category).toBe('unknown')
  })

  it('uses user rules first', () => {
    const rules: Rule[] = [{ name: 'tea', when: { message: 'tea' }, category: 'resource' }]
    expect(classify(new Error('no tea'), rules).rule).toBe('user:tea')
  })
})

describe('classifyFailure', () => {
  it.each<[string, unknown, ErrorCategory]>([
    ['a timeout with an empty message', named('TimeoutError'), 'timeout'],
    ['"Read timed out"', new Error('Read timed out'), 'timeout'],
    ['"429 Too Many Requests"', new Error('429 Too Many Requests'), 'rate-limit'],
    ['"500 Internal Server Error"', new Error('500 Internal Server Error'), 'dependency'],
    ['"502 Bad Gateway"', new Error('502 Bad Gateway'), 'dependency'],
    ['"500"', new Error('500'), 'dependency'],
    ['"HTTP 502"', new Error('HTTP 502'), 'dependency'],
    ['ECONNREFUSED in a message', new Error('connect ECONNREFUSED 127.0.0.1:5432'), 'network'],
    ['"Deadlock detected"', new Error('Deadlock detected'), 'transient'],
    ['"invalid workspace name"', new Error('invalid workspace name'), 'validation'],
    ['"room not found"', new Error('room not found'), 'permanent'],
    ['"author not found"', new Error('author not found'), 'permanent'],
    ['"no information available"', new Error('no information available'), 'unknown'],
    ['"Permission denied for resource"', new Error('Permission denied for resource'), 'permission'],
    [
      'an expired certificate',
      new Error('SSL connection error: certificate has expired'),
      'permanent',
    ],
    ['"fetch failed"', new Error('fetch failed'), 'network'],
    ['"Failed to connect: ECONNREFUSED"', new Error('Failed to connect: ECONNREFUSED'), 'network'],
    ['"Build failed with 3 errors"', new Error('Build failed with 3 errors'), 'unknown'],
    ['a timeout of GitHub', new Error('GitHub request timeout'), 'timeout'],
    ['a tool that timed out', new Error('Tool execution timed out after 30s'), 'timeout'],
    ['a rate limit of GitHub', new Error('API rate limit exceeded for user 42'), 'rate-limit'],
    ['a GitHub 404', Object.assign(new Error('Not Found'), { status: 404 }), 'permanent'],
    ['a code that is a number', Object.assign(new Error('nope'), { code: 404 }), 'permanent'],
    ['an own timeout error', named('HandlerTimeout', 'gave up'), 'timeout'],
  ])('classifies %s', (_, thrown, category) => {
    expect(categoryOf(thrown)).toBe(category)
  })

  it.each<[ErrorCategory, string[]]>([
    [
      'network',
      [
        'ECONNREFUSED',
        'ECONNRESET',
        'ENOTFOUND',
        'EAI_AGAIN',
        'EPIPE',
        'EHOSTUNREACH',
        'ENETUNREACH',
      ],
    ],
    ['network', ['UND_ERR_SOCKET', '08006', '08001', 'PROTOCOL_CONNECTION_LOST', 'P1001']],
    [
      'timeout',
      [
        'ETIMEDOUT',
        'ESOCKETTIMEDOUT',
        'UND_ERR_CONNECT_TIMEOUT',
        'UND_ERR_HEADERS_TIMEOUT',
        '57014',
      ],
    ],
    ['timeout', ['DEADLINE_EXCEEDED', 'ABORT_ERR']],
    [
      'transient',
      [
        'EAGAIN',
        'EBUSY',
        '40001',
        '40P01',
        '55P03',
        'SQLITE_BUSY',
        'SQLITE_BUSY_SNAPSHOT',
        'LOADING',
      ],
    ],
    ['transient', ['ER_LOCK_DEADLOCK', 'ABORTED', 'CLUSTERDOWN']],
    [
      'resource',
      ['ENOSPC', 'EMFILE', 'ENOMEM', '53300', '53100', 'SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'OOM'],
    ],
    ['rate-limit', ['RESOURCE_EXHAUSTED']],
    ['dependency', ['57P01', '57P02', '57P03', 'UNAVAILABLE', 'INTERNAL']],
    [
      'permission',
      ['EACCES', 'EPERM', '28P01', '42501', 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'NOAUTH'],
    ],
    [
      'validation',
      [
        '23505',
        '22001',
        '22P02',
        'SQLITE_CONSTRAINT_UNIQUE',
        'INVALID_ARGUMENT',
        'ERR_INVALID_URL',
      ],
    ],
    [
      'permanent',
      [
        'ENOENT',
        '42P01',
        '42601',
        'CERT_HAS_EXPIRED',
        'NOT_FOUND',
        'UNIMPLEMENTED',
        'ERR_INVALID_ARG_TYPE',
      ],
    ],
    ['unknown', ['E_CUSTOM', 'P0001', '14', '7', 'WEIRD', 'constructor', '__proto__']],
  ])('knows the codes of %s: %j', (category, codes) => {
    for (const code of codes) {
      const { category: found, rule } = classifyFailure(failureOf({ code }))
      expect([code, found]).toEqual([code, category])
      if (category !== 'unknown') expect(rule).toBe(`code:${code}`)
    }
  })

  it.each<[ErrorCategory, number[]]>([
    ['validation', [400, 413, 414, 415, 422, 431, 444]],
    ['permission', [401, 403, 407, 451]],
    ['permanent', [404, 405, 409, 410, 412, 501]],
    ['timeout', [408, 504, 524]],
    ['transient', [423, 425]],
    ['rate-limit', [429]],
    ['dependency', [500, 502, 503, 520, 529, 599]],
    ['resource', [507]],
    ['unknown', [100, 200, 302, 304]],
  ])('knows the statuses of %s: %j', (category, statuses) => {
    for (const status of statuses)
      expect([status, classifyFailure(failureOf({ status })).category]).toEqual([status, category])
  })

  it.each<[ErrorCategory, string[]]>([
    [
      'rate-limit',
      [
        'RateLimitError',
        'ThrottlingException',
        'TooManyRequestsError',
        'ProvisionedThroughputExceededException',
      ],
    ],
    [
      'timeout',
      [
        'TimeoutError',
        'ConnectTimeoutError',
        'APIConnectionTimeoutError',
        'RequestTimeout',
        'AbortError',
      ],
    ],
    ['network', ['APIConnectionError', 'MongoNetworkError', 'SequelizeConnectionRefusedError']],
    [
      'permission',
      [
        'AuthenticationError',
        'PermissionDeniedError',
        'AccessDeniedException',
        'ForbiddenError',
        'UnauthorizedError',
      ],
    ],
    [
      'validation',
      [
        'ZodError',
        'ValidationError',
        'ValidationException',
        'PrismaClientValidationError',
        'BadRequestError',
        'SyntaxError',
      ],
    ],
    [
      'permanent',
      [
        'ResourceNotFoundException',
        'NotFoundError',
        'NoSuchKey',
        'TypeError',
        'ReferenceError',
        'RangeError',
      ],
    ],
    [
      'dependency',
      ['ServiceUnavailable', 'InternalServerError', 'BadGatewayError', 'OverloadedError'],
    ],
    ['resource', ['QuotaExceededError']],
    [
      'unknown',
      ['Error', 'AggregateError', 'MyError', 'Timeline', 'PaymentDeclined', 'constructor'],
    ],
  ])('knows the class names of %s: %j', (category, names) => {
    for (const name of names)
      expect([name, classifyFailure(failureOf({ name })).category]).toEqual([name, category])
  })

  it('reads replies of Redis and messages of gRPC', () => {
    expect(categoryOf(new Error('LOADING Redis is loading the dataset in memory'))).toBe(
      'transient',
    )
    expect(
      categoryOf(new Error('WRONGTYPE Operation against a key holding the wrong kind of value')),
    ).toBe('validation')
    const unavailable = { code: 14, details: 'No connection established' }
    expect(
      categoryOf(
        Object.assign(new Error('14 UNAVAILABLE: No connection established'), unavailable),
      ),
    ).toBe('dependency')
    expect(categoryOf(Object.assign(named('GrpcError', 'x'), { code: 4 }))).toBe('timeout')
  })

  it('finds the reason of "TypeError: fetch failed" in its cause, and treats other TypeErrors as bugs', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED ::1:80'), { code: 'ECONNREFUSED' })
    const failed = new TypeError('fetch failed', { cause })
    expect(classifyFailure(toFailure(failed, at), failed)).toMatchObject({
      category: 'network',
      rule: 'code:ECONNREFUSED',
    })
    expect(categoryOf(new TypeError('fetch failed'))).toBe('network')
    const mistake = classifyFailure(
      toFailure(new TypeError("Cannot read properties of undefined (reading 'timeout')"), at),
    )
    expect(mistake).toMatchObject({
      category: 'permanent',
      recoverability: 'recoverable',
      severity: 'high',
    })
  })

  it('searches codes and statuses in all causes, nearest first', () => {
    const root = Object.assign(new Error('disk'), { code: 'ENOSPC' })
    expect(categoryOf(new Error('a', { cause: new Error('b', { cause: root }) }))).toBe('resource')
    const answered = Object.assign(new Error('upstream'), { status: 503 })
    expect(categoryOf(new Error('could not place the order', { cause: answered }))).toBe(
      'dependency',
    )
    expect(categoryOf(new AggregateError([root], 'all failed'))).toBe('resource')
  })

  it('prefers a code to a class, anywhere in the causes', () => {
    const quota = Object.assign(named('RateLimitError'), {
      status: 429,
      code: 'insufficient_quota',
    })
    expect(categoryOf(quota)).toBe('resource')
    const expired = Object.assign(new Error('x'), { code: 'CERT_HAS_EXPIRED' })
    const wrapped = Object.assign(new Error('Connection error.', { cause: expired }), {
      name: 'APIConnectionError',
    })
    expect(categoryOf(wrapped)).toBe('permanent')
  })

  it('prefers the cause to a vague class', () => {
    const cause = new Error('redirect count exceeded')
    expect(categoryOf(new TypeError('fetch failed', { cause }))).toBe('permanent')
    expect(categoryOf(new TypeError('fetch failed', { cause: new Error('hm') }))).toBe('network')
  })

  it('detects a timeout behind the code of a broken connection', () => {
    const code = 'ECONNABORTED'
    const of = (message: string): ErrorCategory =>
      classifyFailure(failureOf({ code, message })).category
    expect(of('timeout of 50ms exceeded')).toBe('timeout')
    expect(of('write ECONNABORTED')).toBe('network')
  })

  it('overrides a 400 only by clear messages', () => {
    const of = (message: string): ErrorCategory =>
      classifyFailure(failureOf({ status: 400, message })).category
    expect(of('Your credit balance is too low')).toBe('resource')
    expect(of('API key not valid. Please pass a valid API key.')).toBe('permission')
    expect(of('timeout must be a number')).toBe('validation')
    expect(of('quota exceeded is no valid state')).toBe('validation')
  })

  it('reads replies of mail and FTP servers', () => {
    const of = (name: string, message: string): ErrorCategory =>
      classifyFailure(failureOf({ name, message })).category
    expect(of('Error', 'rejected: 451 4.7.1 Greylisting in action')).toBe('transient')
    expect(of('Error', 'rejected: 550 5.1.1 User unknown')).toBe('permanent')
    expect(of('Error', 'Invalid login: 535 5.7.8 Credentials')).toBe('permission')
    expect(of('FTPError', '550 No such file')).toBe('permanent')
    expect(of('Error', 'request failed: 550 of 600 rows')).toBe('unknown')
  })

  it('never parks errors that declare themselves retryable', () => {
    const conflict = Object.assign(new Error('conflict'), { status: 409, retryable: true })
    expect(classifyFailure(toFailure(conflict, at), conflict)).toMatchObject({
      category: 'transient',
      rule: 'retryable',
    })
    const busy = Object.assign(new Error('busy'), { status: 503, retryable: true })
    expect(classifyFailure(toFailure(busy, at), busy).category).toBe('dependency')
    const refused = Object.assign(new Error('no'), { status: 409, retryable: false })
    expect(classifyFailure(toFailure(refused, at), refused).category).toBe('permanent')
  })

  it('reads the words of a code when the message has none', () => {
    expect(classifyFailure(failureOf({ code: 'channel_not_found' }))).toMatchObject({
      category: 'permanent',
      rule: 'code:channel_not_found',
    })
    expect(classifyFailure(failureOf({ code: 'RequestTimeout' })).category).toBe('timeout')
    expect(
      classifyFailure(failureOf({ code: 'lock_timeout', message: 'not found' })).category,
    ).toBe('permanent')
  })

  it('recognises a subclass of a known error by the class that it extends', () => {
    class TimeoutError extends Error {}
    class SlowSupplier extends TimeoutError {
      override name = 'SlowSupplier'
    }
    expect(categoryOf(new SlowSupplier('x'))).toBe('timeout')
  })

  it('treats a 403 as a rate limit if the message says so', () => {
    const secondary =
      'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'
    expect(classifyFailure(failureOf({ status: 403, message: secondary })).category).toBe(
      'rate-limit',
    )
    expect(classifyFailure(failureOf({ status: 403, retryAfterMs: 60_000 })).category).toBe(
      'rate-limit',
    )
    expect(classifyFailure(failureOf({ status: 403, message: 'Quota exceeded' })).category).toBe(
      'resource',
    )
    expect(classifyFailure(failureOf({ status: 403, message: 'Forbidden' })).category).toBe(
      'permission',
    )
  })

  it('treats a failure with retry-after as transient', () => {
    expect(classifyFailure(failureOf({ message: 'hm', retryAfterMs: 5 }))).toMatchObject({
      category: 'transient',
      rule: 'retry-after',
    })
  })

  it('never calls an unknown failure permanent', () => {
    expect(classifyFailure(failureOf({ message: 'the flux capacitor hums' }))).toEqual({
      category: 'unknown',
      severity: 'medium',
      recoverability: 'unknown',
      rule: 'unknown',
    })
  })

  it('compares whole words', () => {
    for (const message of [
      'workspace',
      'digital',
      'latest',
      'authority',
      'formatting',
      'accessory',
      'boom',
      'timeouts2',
    ])
      expect([message, categoryOf(new Error(message))]).toEqual([message, 'unknown'])
    for (const message of ['rate_limit_exceeded', 'Rate-Limit hit', 'RATE LIMIT'])
      expect([message, categoryOf(new Error(message))]).toEqual([message, 'rate-limit'])
  })

  it('classifies anything that can be thrown', () => {
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        const { category, severity, recoverability, rule } = classifyFailure(
          toFailure(thrown, at),
          thrown,
        )
        expect(categories).toContain(category)
        expect(severities).toContain(severity)
        expect(recoverabilities).toContain(recoverability)
        expect(rule).not.toBe('')
      }),
    )
  })

  it('classifies any failure, with causes of any shape', () => {
    const deep = (depth: number): fc.Arbitrary<Failure> =>
      fc.record(
        {
          name: fc.string(),
          message: fc.string(),
          code: fc.string(),
          status: fc.integer(),
          retryAfterMs: fc.double(),
          causes: depth === 0 ? fc.constant([]) : fc.array(deep(depth - 1), { maxLength: 3 }),
          at: fc.constant(at),
        },
        { requiredKeys: ['name', 'message', 'causes', 'at'] },
      )
    fc.assert(
      fc.property(deep(3), (failure) => {
        expect(categories).toContain(classifyFailure(failure).category)
      }),
    )
  })

  it('handles cyclic causes and a proxy that throws', () => {
    const looped = failureOf()
    looped.causes.push(looped, looped)
    expect(classifyFailure(looped).category).toBe('unknown')
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(classifyFailure(failureOf(), proxy).category).toBe('unknown')
  })

  it('reads only the beginning of a long message', () => {
    const long = 'x '.repeat(500_000)
    expect(classifyFailure(failureOf({ message: `${long} timed out` })).category).toBe('unknown')
    expect(classifyFailure(failureOf({ message: `timed out ${long}` })).category).toBe('timeout')
    for (const hostile of [
      'a'.repeat(1e6),
      'E'.repeat(1e6),
      'status'.repeat(2e5),
      '5'.repeat(1e6),
      ' :='.repeat(3e5),
    ])
      expect(classifyFailure(failureOf({ message: hostile, name: hostile })).category).toBe(
        'unknown',
      )
  })

  describe('with user rules', () => {
    const declined: Rule = {
      name: 'declined',
      when: { errorName: 'CardDeclined' },
      category: 'permanent',
      severity: 'low',
    }

    it('uses them first, in order', () => {
      const later: Rule = { name: 'later', when: {}, category: 'transient' }
      const error = named('CardDeclined', 'timed out')
      expect(classifyFailure(toFailure(error, at), error, [declined, later])).toEqual({
        category: 'permanent',
        severity: 'low',
        recoverability: 'permanent',
        rule: 'user:declined',
      })
      expect(classifyFailure(failureOf(), undefined, [declined, later]).rule).toBe('user:later')
    })

    it.each<[string, Rule['when'], boolean]>([
      ['a code', { code: 'E1' }, true],
      ['another code', { code: 'E2' }, false],
      ['a status', { status: 418 }, true],
      ['a string in any case', { message: 'TEAPOT' }, true],
      ['a pattern', { message: /^i am a tea/i }, true],
      ['a pattern that does not match', { message: /coffee/ }, false],
      ['all of several', { code: 'E1', status: 418, message: 'teapot' }, true],
      ['one of several that does not hold', { code: 'E1', status: 500 }, false],
      ['one of a list', [{ code: 'E2' }, { status: 418 }], true],
      ['none of a list', [{ code: 'E2' }, { status: 500 }], false],
      ['an empty list', [], false],
      ['a function that says yes', (failure) => failure.status === 418, true],
      ['a function that says no', () => false, false],
    ])('matches by %s', (_, when, matches) => {
      const failure = failureOf({ message: 'I am a teapot', code: 'E1', status: 418 })
      const { rule } = classifyFailure(failure, undefined, [
        { name: 'tea', when, category: 'resource' },
      ])
      expect(rule === 'user:tea').toBe(matches)
    })

    it('includes the advice of a rule, if it has any', () => {
      const { hint, maxRetries } = { hint: 'Call them.', maxRetries: 2 }
      const own = classifyFailure(failureOf(), undefined, [
        { name: 'a', when: {}, category: 'resource', detail: 'd', hint, maxRetries },
      ])
      expect(own).toMatchObject({ detail: 'd', template: { name: 'a', hint, maxRetries } })
      const bare = classifyFailure(failureOf(), undefined, [{ ...declined, when: {} }])
      expect(bare).not.toHaveProperty('template')
      expect(bare).not.toHaveProperty('detail')
    })

    it('matches causes, if one of them has all fields', () => {
      const when = { code: 'E1', status: 500 }
      const rules: Rule[] = [{ name: 'both', when, category: 'resource' }]
      const together = failureOf({ causes: [failureOf({ code: 'E1', status: 500 })] })
      const apart = failureOf({ code: 'E1', causes: [failureOf({ status: 500 })] })
      expect(classifyFailure(together, undefined, rules).rule).toBe('user:both')
      expect(classifyFailure(apart, undefined, rules).rule).not.toBe('user:both')
    })

    it('gives the same result twice for a global pattern', () => {
      const rules: Rule[] = [{ name: 'sticky', when: { message: /tea/g }, category: 'resource' }]
      const ask = (): string =>
        classifyFailure(failureOf({ message: 'tea' }), undefined, rules).rule
      expect([ask(), ask(), ask()]).toEqual(['user:sticky', 'user:sticky', 'user:sticky'])
    })

    it('does not treat a returned promise as true', () => {
      const when = (async () => true) as unknown as () => boolean
      const rules: Rule[] = [{ name: 'async', when, category: 'permanent' }]
      expect(classifyFailure(failureOf(), undefined, rules).rule).toBe('unknown')
    })

    it('skips one that throws and reports it', () => {
      const broken: Rule = {
        name: 'broken',
        when: () => {
          throw new Error('oops')
        },
        category: 'permanent',
      }
      const found = classifyFailure(failureOf({ code: 'ETIMEDOUT' }), undefined, [broken])
      expect(found).toMatchObject({
        category: 'timeout',
        problems: ['rule "broken" threw Error: oops'],
      })
    })
  })
})

import { describe, expect, it } from 'vitest'
import { operationNames, readOptions, readPolicy } from '../../src/options/options.ts'
import { Policies } from '../../src/options/per-queue.ts'
import { fixed } from '../../src/policy/backoff.ts'
import type { Rule } from '../../src/policy/classify.ts'
import { templates } from '../../src/policy/templates.ts'

describe('readOptions', () => {
  it('fills in the defaults', () => {
    expect(readOptions({})).toMatchObject({
      maxRetries: 3,
      priority: 'medium',
      maxConcurrent: 10,
      leaseMs: 30_000,
      pollMs: 1000,
      overflow: 'reject',
      maxItems: Infinity,
    })
  })

  it('uses the given values, and treats undefined as not given', () => {
    expect(readOptions({ maxRetries: 7, leaseMs: undefined as unknown as number })).toMatchObject({
      maxRetries: 7,
      leaseMs: 30_000,
    })
  })

  it('treats undefined as not given in queues, dependencies and breakers, too', () => {
    const undefinedFields = { maxRetries: undefined, breaker: { failures: undefined, openMs: 5 } }
    const breaker = { openMs: 5 }
    const read = readOptions({
      ...undefinedFields,
      queues: { mail: undefinedFields },
      dependencies: { smtp: { breaker: undefinedFields.breaker, budget: undefined } },
    } as never)
    expect(read).toMatchObject({ maxRetries: 3 })
    expect(read.breaker).toStrictEqual(breaker)
    expect(read.queues).toStrictEqual({ mail: { breaker } })
    expect(read.dependencies).toStrictEqual({ smtp: { breaker } })
    expect(readPolicy(undefinedFields as never)).toStrictEqual({ breaker })
  })

  it('rejects requireFix without the version of the application', () => {
    const why = 'compares versions: set app.version to the version of this application'
    const expectInvalid = (read: () => unknown, option: string): void => {
      expect(read).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }) as Error)
      expect(read).toThrow(`option "${option}" ${why}`)
    }
    expectInvalid(() => readOptions({ requireFix: true, app: { name: 'shop' } }), 'requireFix')
    const queues = { mail: { requireFix: true }, orders: { requireFix: false } }
    expectInvalid(() => readOptions({ queues }), 'queues.mail.requireFix')
    const policies = new Policies(readOptions({}))
    expectInvalid(() => policies.set('mail', { requireFix: true }), 'queues.mail.requireFix')
    expect(policies.of('mail').requireFix).toBe(false)
    const app = { version: '1.4.0' }
    expect(readOptions({ queues, app })).toMatchObject({ requireFix: false, queues })
    new Policies(readOptions({ app })).set('mail', { requireFix: true })
  })

  it('checks the rules for edits and replays, for all queues and for one', () => {
    const payloadSchema = { type: 'object' }
    const mail = { lockedHeaders: ['auth'], payloadSchema, replay: 'never' } as const
    const read = readOptions({ queues: { mail } })
    expect(read).toMatchObject({ lockedHeaders: [], replay: 'safe' })
    expect(read.queues['mail']).toEqual(mail)
    expect(read.queues['mail']!.payloadSchema).toBe(payloadSchema)
    for (const [policy, why] of [
      [{ payloadSchema: { typ: 'object' } }, 'must be a JSON Schema: strict mode: unknown keyword'],
      [{ payloadSchema: 'object' }, 'payloadSchema'],
      [{ lockedHeaders: 'auth' }, 'lockedHeaders'],
      [{ replay: 'always' }, 'replay'],
      [{ requireFix: 'yes' }, 'requireFix'],
    ] as const) {
      expect(() => readOptions(policy as never)).toThrow(why)
      expect(() => readOptions({ queues: { mail: policy } } as never)).toThrow(why)
      expect(() => readPolicy(policy as never)).toThrow(why)
    }
  })

  it('accepts every form of a rule', () => {
    const rules: Rule[] = [
      { name: 'a', when: { code: 'X' }, category: 'network' },
      { name: 'b', when: [{ status: 402 }, { message: /x/i }], category: 'permanent' },
      { name: 'c', when: () => true, category: 'unknown', maxRetries: 1000, backoff: fixed(1) },
    ]
    expect(readOptions({ rules, templates: ['disk-full', ...rules] }).rules).toHaveLength(7)
    expect(() => readOptions({ templates: [...templates] })).not.toThrow()
  })

  it.each<[object, string]>([
    [{ category: 'netwrok' }, '"rules.0.category"'],
    [{ severity: 'bad' }, '"rules.0.severity"'],
    [{ priority: 'urgent' }, '"rules.0.priority"'],
    [{ maxRetries: Number.NaN }, '"rules.0.maxRetries"'],
    [{ maxRetries: -1 }, '"rules.0.maxRetries"'],
    [{ backoff: { kind: 'sometimes' } }, '"rules.0.backoff"'],
    [{ name: '' }, '"rules.0.name"'],
    [{ hint: 5 }, '"rules.0.hint"'],
    [{ retries: 5 }, 'unknown option "rules.0.retries"'],
    [{ when: undefined }, '"rules.0.when"'],
    [{ when: 'ECONNREFUSED' }, '"rules.0.when"'],
    [{ when: {} }, 'must have at least one of errorName, code, status and message'],
    [{ when: [{ code: 'X' }, {}] }, '"rules.0.when'],
    [{ when: { codes: 'X' } }, 'unknown option "rules.0.when.codes": did you mean "code"?'],
  ])('rejects a rule with %j', (part, message) => {
    const rule = { name: 'a', when: { code: 'X' }, category: 'network', ...part }
    expect(() => readOptions({ rules: [rule] } as never)).toThrow(message)
    expect(() => readOptions({ templates: [rule] } as never)).toThrow('option "templates.0')
  })

  it.each<[object, string]>([
    [{ maxRetires: 1 }, 'unknown option "maxRetires": did you mean "maxRetries"?'],
    [{ colour: 'red' }, 'unknown option "colour": known: '],
    [
      { maxRetriesByCategory: { rate_limit: 3 } },
      'unknown option "maxRetriesByCategory.rate_limit": did you mean "rate-limit"?',
    ],
    [{ maxRetriesByCategory: { network: -1 } }, '"maxRetriesByCategory.network"'],
    [{ retryForMs: 0 }, '"retryForMs"'],
    [{ queues: { mail: { retryForMs: '1h' } } }, '"queues.mail.retryForMs"'],
    [{ queues: { mail: { retries: 3 } } }, 'unknown option "queues.mail.retries"'],
    [{ maxRetries: -1 }, '"maxRetries"'],
    [{ maxRetries: 2.5 }, '"maxRetries"'],
    [{ maxRetries: Number.NaN }, '"maxRetries"'],
    [{ maxItems: 0 }, '"maxItems"'],
    [{ leaseMs: Infinity }, '"leaseMs"'],
    [{ leaseMs: 1e308 }, '"leaseMs"'],
    [{ pollMs: 'P1D' }, '"pollMs"'],
    [{ pollMs: 0 }, '"pollMs"'],
    [{ timeoutMs: -5 }, 'option "timeoutMs" must be a number from 1 to 315360000000, got -5'],
    [{ priority: 'urgent' }, '"priority"'],
    [{ overflow: 'drop' }, '"overflow"'],
    [{ backoff: { kind: 'exponential', baseMs: -1, factor: 2, maxMs: 1 } }, '"backoff"'],
    [{ backoff: { kind: 'sometimes' } }, '"backoff"'],
    [{ retention: { archiveAfterMs: '3 days' } }, '"retention.archiveAfterMs"'],
    [{ breaker: { failures: 0 } }, '"breaker'],
    [{ breaker: { failure: 1 } }, 'unknown option "breaker.failure": did you mean "failures"?'],
    [
      { queues: { mail: { retention: { days: 1 } } } },
      'unknown option "queues.mail.retention.days": known: archiveAfterMs, removeAfterMs',
    ],
    ...Object.entries(operationNames).map(([name, ours]): [object, string] => [
      { [name]: 1 },
      `unknown option "${name}": use ${ours}`,
    ]),
    [{ rules: 'none' }, '"rules"'],
    [{ observers: [1] }, '"observers.0"'],
    [{ worker: '' }, '"worker"'],
  ])('rejects %j with INVALID_CONFIG and the name of the option', (options, message) => {
    expect(() => readOptions(options)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringContaining(message) as string,
      }) as Error,
    )
  })
})

describe('readPolicy', () => {
  it('accepts queue options and rejects global options', () => {
    expect(readPolicy({ backoff: fixed(1), maxRetries: 1 })).toEqual({
      backoff: fixed(1),
      maxRetries: 1,
    })
    expect(() => readPolicy({ maxItems: 3 } as object)).toThrow('unknown queue option "maxItems"')
  })
})

describe('the option fingerprints', () => {
  it('accepts strings and patterns', () => {
    const fingerprints = [
      { match: { queue: 'a', message: /x/ }, fingerprint: 'x' },
      { match: { message: 'y', code: 'E1', name: 'Error' }, fingerprint: '{queue}-{name}' },
    ]
    expect(readOptions({ fingerprints }).fingerprints).toEqual(fingerprints)
  })

  it.each<[object, string]>([
    [{ match: {}, fingerprint: 'x' }, 'must have at least one of queue, name, code and message'],
    [{ match: { queue: 'a' }, fingerprint: '{host}' }, 'unknown placeholder {host}'],
    [{ match: { queue: 'a' }, fingerprint: '' }, '"fingerprints.0.fingerprint"'],
    [{ match: { queues: 'a' }, fingerprint: 'x' }, 'queues'],
    [{ match: { queue: 'a' } }, '"fingerprints.0.fingerprint"'],
  ])('rejects %j', (rule, message) => {
    expect(() => readOptions({ fingerprints: [rule] as never })).toThrow(message)
  })
})

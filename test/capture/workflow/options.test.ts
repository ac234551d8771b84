import { describe, expect, it } from 'vitest'
import { readWorkflowOptions, type WorkflowOptions } from '../../../src/capture/workflow/options.ts'
import { immediate } from '../../../src/policy/backoff.ts'

describe('readWorkflowOptions', () => {
  it('has a default for everything', () => {
    const { select, ...rest } = readWorkflowOptions({})
    expect(rest).toEqual({
      name: 'workflow',
      strategy: 'automatic',
      handler: undefined,
      policy: {},
    })
    expect([...select]).toEqual([
      'transient',
      'network',
      'timeout',
      'rate-limit',
      'resource',
      'dependency',
      'unknown',
    ])
  })

  it('accepts every queue option', () => {
    const policy = {
      maxRetries: 5,
      backoff: immediate(),
      priority: 'high',
      timeoutMs: 1000,
      retention: { archiveAfterMs: 1 },
      breaker: false,
    } as const
    expect(readWorkflowOptions({ name: 'sweeps', ...policy })).toMatchObject({
      name: 'sweeps',
      policy,
    })
  })

  it.each<[Record<string, unknown>, string]>([
    [{ stratgy: 'manual' }, 'unknown workflow option "stratgy": did you mean "strategy"?'],
    [{ maxRetrys: 1 }, 'did you mean "maxRetries"?'],
    [{ maxRetries: -1 }, 'maxRetries'],
    [{ strategy: 'automatc' }, 'did you mean "automatic"?'],
    [
      { strategy: 'sometimes' },
      'must be automatic, selective, manual or disabled, got "sometimes"',
    ],
    [{ select: ['netwrok'] }, 'did you mean "network"?'],
    [{ select: 'network' }, 'workflow option "select" must be an array, got "network"'],
    [{ handler: 'sweep' }, 'workflow option "handler" must be a function, got "sweep"'],
  ])('rejects %o by name', (options, message) => {
    expect(() => readWorkflowOptions(options as WorkflowOptions)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringContaining(message) as string,
      }),
    )
  })

  it('rejects an invalid queue name', () => {
    expect(() => readWorkflowOptions({ name: '' })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    )
  })
})

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readFailure, type WorkflowFailure } from '../../../src/capture/workflow/result.ts'

const targets = ['a', 'b', 'c']

function readAs(returned: unknown, of: string[] = targets): WorkflowFailure | undefined {
  return readFailure(returned, {
    targets: of,
    isPermanent: (error) => error instanceof Error && error.message === 'forbidden',
  })
}

/** A revoked proxy: every operation on it throws. */
function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe('readFailure', () => {
  it.each([
    [undefined],
    [null],
    ['failed'],
    [42],
    [{}],
    [{ ok: true }],
    [{ status: 'completed', failed: ['a'] }],
    [{ status: 200 }],
    [[{ target: 'a', status: 'failed' }]],
  ])('returns undefined for %o', (returned) => {
    expect(readAs(returned)).toBeUndefined()
  })

  it.each([
    [{ ok: false, error: 'x' }, 'failed'],
    [{ status: 'failed', error: 'x' }, 'failed'],
    [{ status: 'FAILED', error: 'x' }, 'failed'],
    [{ status: 'partial', error: 'x' }, 'partial'],
    [{ ok: false, status: 'partial', error: 'x' }, 'partial'],
    [{ ok: true, status: 'failed', error: 'x' }, 'failed'],
  ])('returns a failure for %o', (returned, status) => {
    expect(readAs(returned)).toEqual({ status, error: 'x', failed: targets })
  })

  it.each<[string, object, string[]]>([
    ['a list of names', { failed: ['b'] }, ['b']],
    ['a list of names in another order', { failed: ['c', 'a'] }, ['a', 'c']],
    ['a list of objects', { failed: [{ target: 'c', error: 'x' }] }, ['c']],
    [
      'results by target, by status',
      { results: { a: { status: 'completed' }, b: { status: 'failed' }, c: { status: 'done' } } },
      ['b'],
    ],
    [
      'results by target, by ok',
      { results: { a: { ok: true }, b: { ok: false }, c: { ok: true } } },
      ['b'],
    ],
    [
      'results by target, by error',
      { results: { a: { ok: true }, b: { ok: true, error: 'x' }, c: { ok: true } } },
      ['b'],
    ],
    ['status strings', { results: { a: 'success', b: 'failed', c: 'Completed' } }, ['b']],
    ['booleans', { results: { a: true, b: false, c: true } }, ['b']],
    [
      'settled promises',
      {
        results: {
          a: { status: 'fulfilled', value: 1 },
          b: { status: 'rejected', reason: 'x' },
          c: { status: 'fulfilled', value: 2 },
        },
      },
      ['b'],
    ],
    [
      'a list of results',
      {
        results: [
          { target: 'a', status: 'completed' },
          { target: 'b', ok: false },
          { target: 'c', ok: true },
        ],
      },
      ['b'],
    ],
    [
      'names and results together',
      { failed: ['a'], results: { b: { ok: false }, c: { ok: true } } },
      ['a', 'b'],
    ],
  ])('narrows to the failed targets given as %s', (_title, given, failed) => {
    expect(readAs({ status: 'partial', ...given })?.failed).toEqual(failed)
  })

  it.each<[string, object, string[]]>([
    ['a target without a result', { results: { a: { ok: true }, b: { ok: true } } }, ['c']],
    [
      'a result that is unclear',
      { results: { a: { ok: true }, b: { output: 1 }, c: { status: 'merged' } } },
      ['b', 'c'],
    ],
    [
      'a target with two results',
      {
        results: [
          { target: 'a', ok: true },
          { target: 'a', ok: false },
          { target: 'b', ok: true },
          { target: 'c', ok: true },
        ],
      },
      ['a'],
    ],
    ['all targets when none is named', {}, targets],
    ['all targets when the list is empty', { failed: [] }, targets],
    ['all targets when only their number is given', { failed: 2 }, targets],
    [
      'all targets when all are reported as done',
      { results: { a: true, b: true, c: true } },
      targets,
    ],
    ['all targets when an unknown target failed', { failed: ['a', 'z'] }, targets],
    [
      'all targets when an unknown target failed in the results',
      { results: { a: true, b: true, c: true, z: false } },
      targets,
    ],
    ['all targets when a name is not a string', { failed: ['a', 7] }, targets],
    [
      'all targets when a failed result has no name',
      { results: [{ ok: false }, { target: 'a', ok: true }] },
      targets,
    ],
  ])('retries %s', (_title, given, failed) => {
    expect(readAs({ status: 'partial', ...given })?.failed).toEqual(failed)
  })

  it('retries all targets when reading the result throws', () => {
    const unreadable = {
      status: 'partial',
      failed: revokedProxy(),
      results: revokedProxy(),
      errors: revokedProxy(),
    }
    expect(readAs(unreadable)?.failed).toEqual(targets)
    expect(readAs(revokedProxy())).toBeUndefined()
  })

  it('does not narrow a failure with the status failed', () => {
    expect(readAs({ status: 'failed', failed: ['b'] })?.failed).toEqual(targets)
    expect(readAs({ ok: false, failed: ['b'] })?.failed).toEqual(targets)
  })

  it('returns no targets for a task without targets', () => {
    expect(readAs({ status: 'partial', failed: ['b'] }, [])?.failed).toEqual([])
  })

  it('prefers the error field, then errors, then the errors of the results', () => {
    const [one, two] = [new Error('one'), new Error('two')]
    const results = { a: { error: two } }
    expect(readAs({ status: 'failed', error: one, errors: [two] })?.error).toBe(one)
    expect(readAs({ status: 'failed', errors: [one], results })?.error).toBe(one)
    expect(readAs({ status: 'failed', errors: { a: one } })?.error).toBe(one)
    expect(readAs({ status: 'partial', error: null, results })?.error).toBe(two)
    const many = readAs({ status: 'partial', errors: [one, two] })?.error as AggregateError
    expect(many.errors).toEqual([one, two])
    expect(many.message).toBe('3 of 3 targets failed')
    expect(readAs({ status: 'partial', failed: ['b'] })?.error).toEqual(
      new Error('1 of 3 targets failed'),
    )
    expect(readAs({ status: 'failed' }, [])?.error).toEqual(new Error('the workflow failed'))
  })

  it('prefers a retryable error to a permanent one, so that other targets are retried', () => {
    const [permanent, busy] = [new Error('forbidden'), new Error('busy')]
    const results = { a: { error: permanent }, b: { error: busy }, c: { ok: true } }
    const failure = readAs({ status: 'partial', results })
    expect(failure?.error).toBe(busy)
    expect(failure?.failed).toEqual(['a', 'b'])
    expect(readAs({ status: 'partial', results: { a: { error: permanent } } })?.error).toBe(
      permanent,
    )
  })

  it('never throws, and never omits a target that is reported as failed', () => {
    const outcome = fc.oneof(
      fc.anything(),
      fc.record({ ok: fc.boolean(), error: fc.anything() }, { requiredKeys: [] }),
      fc.constantFrom('failed', 'done', true, false),
    )
    const one = fc.record({
      target: fc.oneof(fc.constantFrom(...targets, 'z'), fc.anything()),
      ok: outcome,
    })
    const list = fc.array(fc.oneof(one, fc.constantFrom(...targets, 'z'), fc.anything()))
    const results = fc.oneof(
      list,
      fc.dictionary(fc.constantFrom(...targets, 'z', '__proto__'), outcome),
      fc.anything(),
    )
    fc.assert(
      fc.property(fc.oneof(list, fc.anything()), results, (failed, by) => {
        const left = readAs({ status: 'partial', failed, results: by })!.failed
        expect(left.length).toBeGreaterThan(0)
        if (Array.isArray(failed))
          for (const target of targets) if (failed.includes(target)) expect(left).toContain(target)
        if (!Array.isArray(by) && typeof by === 'object' && by !== null)
          for (const target of targets)
            if ((by as Record<string, unknown>)[target] === false) expect(left).toContain(target)
      }),
      { numRuns: 500 },
    )
  })
})

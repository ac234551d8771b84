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

/** Reading any property of it throws, and so does asking what it is. */
function poison(): object {
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
  ])('takes %o for no failure', (returned) => {
    expect(readAs(returned)).toBeUndefined()
  })

  it.each([
    [{ ok: false, error: 'x' }, 'failed'],
    [{ status: 'failed', error: 'x' }, 'failed'],
    [{ status: 'FAILED', error: 'x' }, 'failed'],
    [{ status: 'partial', error: 'x' }, 'partial'],
    [{ ok: false, status: 'partial', error: 'x' }, 'partial'],
    [{ ok: true, status: 'failed', error: 'x' }, 'failed'],
  ])('takes %o for a failure', (returned, status) => {
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
    ['results in words', { results: { a: 'success', b: 'failed', c: 'Completed' } }, ['b']],
    ['results of yes and no', { results: { a: true, b: false, c: true } }, ['b']],
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
      'names and results: what either calls failed',
      { failed: ['a'], results: { b: { ok: false }, c: { ok: true } } },
      ['a', 'b'],
    ],
  ])('leaves what failed, said as %s', (_title, said, failed) => {
    expect(readAs({ status: 'partial', ...said })?.failed).toEqual(failed)
  })

  it.each<[string, object, string[]]>([
    ['a target that no result names', { results: { a: { ok: true }, b: { ok: true } } }, ['c']],
    [
      'a result that is unclear',
      { results: { a: { ok: true }, b: { output: 1 }, c: { status: 'merged' } } },
      ['b', 'c'],
    ],
    [
      'a target that is said twice',
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
    ['all, when nothing is named', {}, targets],
    ['all, when the list is empty', { failed: [] }, targets],
    ['all, when only their number is said', { failed: 2 }, targets],
    ['all, when all are said to be done', { results: { a: true, b: true, c: true } }, targets],
    ['all, when a stranger failed', { failed: ['a', 'z'] }, targets],
    [
      'all, when a stranger among the results failed',
      { results: { a: true, b: true, c: true, z: false } },
      targets,
    ],
    ['all, when a name is none', { failed: ['a', 7] }, targets],
    [
      'all, when a failed result has no name',
      { results: [{ ok: false }, { target: 'a', ok: true }] },
      targets,
    ],
  ])('runs again %s', (_title, said, failed) => {
    expect(readAs({ status: 'partial', ...said })?.failed).toEqual(failed)
  })

  it('runs all again when what is said cannot be read', () => {
    const unreadable = { status: 'partial', failed: poison(), results: poison(), errors: poison() }
    expect(readAs(unreadable)?.failed).toEqual(targets)
    expect(readAs(poison())).toBeUndefined()
  })

  it('does not narrow what failed as a whole', () => {
    expect(readAs({ status: 'failed', failed: ['b'] })?.failed).toEqual(targets)
    expect(readAs({ ok: false, failed: ['b'] })?.failed).toEqual(targets)
  })

  it('has nothing to narrow where there are no targets', () => {
    expect(readAs({ status: 'partial', failed: ['b'] }, [])?.failed).toEqual([])
  })

  it('takes the error that is said, else the errors, else those of the results', () => {
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

  it('does not let one hopeless target keep the others from being retried', () => {
    const [hopeless, busy] = [new Error('forbidden'), new Error('busy')]
    const results = { a: { error: hopeless }, b: { error: busy }, c: { ok: true } }
    const failure = readAs({ status: 'partial', results })
    expect(failure?.error).toBe(busy)
    expect(failure?.failed).toEqual(['a', 'b'])
    expect(readAs({ status: 'partial', results: { a: { error: hopeless } } })?.error).toBe(hopeless)
  })

  it('never throws, and never leaves out what is said to have failed', () => {
    const said = fc.oneof(
      fc.anything(),
      fc.record({ ok: fc.boolean(), error: fc.anything() }, { requiredKeys: [] }),
      fc.constantFrom('failed', 'done', true, false),
    )
    const one = fc.record({
      target: fc.oneof(fc.constantFrom(...targets, 'z'), fc.anything()),
      ok: said,
    })
    const list = fc.array(fc.oneof(one, fc.constantFrom(...targets, 'z'), fc.anything()))
    const results = fc.oneof(
      list,
      fc.dictionary(fc.constantFrom(...targets, 'z', '__proto__'), said),
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

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  breakerRule,
  defaultAlertRules,
  evaluate,
  type AlertRule,
  type Evaluation,
  type Measures,
  type QueueMeasures,
  type Standing,
} from '../../src/policy/alerts.ts'

const none: QueueMeasures = { exhausted: 0, parked: 0, pending: 0, resolved: 0, failed: 0 }

interface Given extends Partial<QueueMeasures> {
  utilisation?: number
  queues?: Record<string, Partial<QueueMeasures>>
  breakers?: Record<string, boolean>
}

function measures({ utilisation, queues = {}, breakers, ...counts }: Given): Measures {
  return {
    ...(utilisation === undefined ? {} : { utilisation }),
    all: { ...none, ...counts },
    queues: new Map(Object.entries(queues).map(([name, own]) => [name, { ...none, ...own }])),
    ...(breakers ? { breakers: new Map(Object.entries(breakers)) } : {}),
  }
}

const exhausted: AlertRule = {
  name: 'e',
  when: { metric: 'exhausted', above: 0 },
  severity: 'critical',
}
const rate: AlertRule = {
  name: 'r',
  when: { metric: 'success-rate', below: 0.5 },
  severity: 'warning',
}

/** Evaluates the rules once a minute and returns each evaluation. */
function evaluateAll(rules: readonly AlertRule[], given: readonly Given[]): Evaluation[] {
  let standing: ReadonlyMap<string, Standing> = new Map()
  return given.map((one, index) => {
    const evaluation = evaluate(rules, measures(one), standing, index * 60_000)
    standing = evaluation.standing
    return evaluation
  })
}

/** `+name` for each raised alert, `-name` for each cleared one, per evaluation. */
function changesOf(rules: readonly AlertRule[], given: readonly Given[]): string[][] {
  return evaluateAll(rules, given).map(({ raised, cleared }) => [
    ...raised.map(({ name }) => `+${name}`),
    ...cleared.map(({ name }) => `-${name}`),
  ])
}

describe('defaultAlertRules', () => {
  it.each<[string, Given, string[]]>([
    ['nothing when all is well', {}, []],
    ['nothing at exactly 80 %', { utilisation: 0.8 }, []],
    ['above 80 %', { utilisation: 0.8001 }, ['nearly-full']],
    ['nothing at exactly 100 exhausted', { exhausted: 100 }, []],
    ['above 100 exhausted', { exhausted: 101 }, ['many-exhausted']],
    ['nothing at a rate of exactly one half', { resolved: 10, failed: 10 }, []],
    ['a rate below one half', { resolved: 9, failed: 11 }, ['retries-fail']],
    ['nothing of a rate over too few runs', { resolved: 0, failed: 19 }, []],
    ['nothing of parked and pending letters', { parked: 1e6, pending: 1e6 }, []],
    [
      'all at once',
      { utilisation: 1, exhausted: 999, failed: 99 },
      ['nearly-full', 'many-exhausted', 'retries-fail'],
    ],
  ])('raise %s', (_, given, names) => {
    expect(changesOf(defaultAlertRules, [given])).toEqual([names.map((name) => `+${name}`)])
  })
})

describe('evaluate', () => {
  it('reports each crossing once', () => {
    const counts = [0, 1, 2, 500, 0, 0, 3].map((count) => ({ exhausted: count }))
    expect(changesOf([exhausted], counts)).toEqual([[], ['+e'], [], [], ['-e'], [], ['+e']])
  })

  it('reports the value, the threshold, the start and the advice', () => {
    const rule: AlertRule = { ...exhausted, queue: 'mail', hint: 'Look.' }
    const all = evaluateAll([rule], [{ queues: { mail: { exhausted: 7 } } }, {}])
    const alert = {
      name: 'e',
      severity: 'critical',
      metric: 'exhausted',
      above: 0,
      queue: 'mail',
      hint: 'Look.',
      raisedAt: '1970-01-01T00:00:00.000Z',
    }
    expect(all[0]!.raised).toEqual([
      { ...alert, value: 7, summary: 'exhausted is 7 in queue mail, above 0' },
    ])
    expect(all[1]!.cleared).toEqual([
      {
        ...alert,
        value: 0,
        summary: 'exhausted is 0 in queue mail, no longer above 0',
        clearedAt: '1970-01-01T00:01:00.000Z',
      },
    ])
  })

  it('formats shares as percentages', () => {
    const [{ raised } = { raised: [] }] = evaluateAll(defaultAlertRules, [
      { utilisation: 0.8567, resolved: 1, failed: 19 },
    ])
    expect(raised.map(({ summary }) => summary)).toEqual([
      'utilisation is 85.7 %, above 80 %',
      'success rate is 5 %, below 50 %',
    ])
  })

  it('evaluates the queue of a rule, or all queues together', () => {
    const mail = { ...exhausted, name: 'mail', queue: 'mail' }
    const given = { exhausted: 3, queues: { orders: { exhausted: 3 } } }
    expect(changesOf([exhausted, mail], [given])).toEqual([['+e']])
  })

  it('waits until the condition has held for forMs, and starts over when it ends', () => {
    const rule = { ...exhausted, forMs: 120_000 }
    const counts = [1, 1, 0, 1, 1, 1, 1].map((count) => ({ exhausted: count }))
    expect(changesOf([rule], counts)).toEqual([[], [], [], [], [], ['+e'], []])
  })

  it('keeps the state of a rule while its metric is unknown', () => {
    const full: AlertRule = {
      name: 'full',
      when: { metric: 'utilisation', above: 0.5 },
      severity: 'warning',
    }
    expect(changesOf([full], [{}, { utilisation: 0.6 }, {}, { utilisation: 0.1 }])).toEqual([
      [],
      ['+full'],
      [],
      ['-full'],
    ])
  })

  it('raises for an open breaker, ignores unknown ones, and clears when it closes', () => {
    const rule = breakerRule('queue', 'mail')
    const name = 'breaker-open:mail'
    expect(
      changesOf([rule], [{}, { breakers: { [name]: true } }, {}, { breakers: { [name]: false } }]),
    ).toEqual([[], [`+${name}`], [], [`-${name}`]])
    expect(breakerRule('dependency', 'mail').name).not.toBe(name)
  })

  describe('of a success rate', () => {
    it('evaluates the lifetime first, and then only new runs', () => {
      const given = [
        { resolved: 0, failed: 100 },
        { resolved: 30, failed: 100 },
        { resolved: 1000, failed: 100 },
        { resolved: 1000, failed: 120 },
      ]
      expect(changesOf([rate], given)).toEqual([['+r'], ['-r'], [], ['+r']])
    })

    it('ignores too few runs, and keeps the alert meanwhile', () => {
      const given = [
        { failed: 20 },
        { failed: 20, resolved: 19 },
        { failed: 20, resolved: 19 },
        { failed: 20, resolved: 20 },
      ]
      expect(changesOf([rate], given)).toEqual([['+r'], [], [], ['-r']])
    })

    it('uses minRuns of the rule, and never evaluates 0 runs', () => {
      const given = [{}, { failed: 1 }, { failed: 1 }, { failed: 1, resolved: 1 }]
      expect(changesOf([{ ...rate, minRuns: 1 }], given)).toEqual([[], ['+r'], [], ['-r']])
    })

    it('starts over when counts fall, as they do with another store', () => {
      const given = [{ failed: 1000 }, { resolved: 30, failed: 1 }]
      expect(changesOf([rate], given)).toEqual([['+r'], ['-r']])
    })
  })

  it('raises and clears alternately, for every rule and all measures', () => {
    const count = fc.nat({ max: 3 })
    const given: fc.Arbitrary<Given> = fc.record(
      {
        utilisation: fc.constantFrom(0, 0.5, 0.8, 0.9, 1.2, Number.NaN),
        exhausted: count,
        parked: count,
        pending: count,
        resolved: fc.nat({ max: 60 }),
        failed: fc.nat({ max: 60 }),
        breakers: fc.dictionary(fc.constant('breaker-open:q'), fc.boolean()),
      },
      { requiredKeys: [] },
    )
    const rules: AlertRule[] = [
      ...defaultAlertRules,
      exhausted,
      { ...rate, minRuns: 5, forMs: 60_000 },
      { name: 'p', when: { metric: 'pending', below: 2 }, severity: 'warning', forMs: 90_000 },
      breakerRule('queue', 'q'),
    ]
    fc.assert(
      fc.property(fc.array(given, { maxLength: 30 }), (all) => {
        const up = new Set<string>()
        for (const change of changesOf(rules, all).flat()) {
          const name = change.slice(1)
          expect(up.has(name)).toBe(change.startsWith('-'))
          if (change.startsWith('+')) up.add(name)
          else up.delete(name)
        }
      }),
    )
  })
})

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { breakerRule, defaultAlertRules, type AlertRule } from '../../src/policy/alert-rule.ts'
import type {
  Measures,
  QueueMeasures,
  RuleState,
  GroupMeasures,
} from '../../src/policy/alert-measures.ts'
import { evaluate, type Evaluation, checksOf, maxGroupAlerts } from '../../src/policy/alerts.ts'

const none: QueueMeasures = {
  exhausted: 0,
  parked: 0,
  pending: 0,
  resolved: 0,
  failed: 0,
  captured: 0,
}

interface Given extends Partial<QueueMeasures> {
  groups?: Record<string, Partial<GroupMeasures>>
  utilisation?: number
  queues?: Record<string, Partial<QueueMeasures>>
  breakers?: Record<string, boolean>
}

const aGroup: GroupMeasures = {
  status: 'open',
  isNew: true,
  hasOpenLetters: true,
  failures: 1,
  firstMs: 0,
  queues: ['orders'],
  errorName: 'TypeError',
  title: 'TypeError: the secret is 1234',
}

function measures({ utilisation, queues = {}, breakers, groups, ...counts }: Given): Measures {
  return {
    ...(utilisation === undefined ? {} : { utilisation }),
    all: { ...none, ...counts },
    queues: new Map(Object.entries(queues).map(([name, own]) => [name, { ...none, ...own }])),
    ...(breakers ? { breakers: new Map(Object.entries(breakers)) } : {}),
    groups: new Map(
      Object.entries(groups ?? {}).map(([group, own]) => [group, { ...aGroup, ...own }]),
    ),
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
  let states: ReadonlyMap<string, RuleState> = new Map()
  return given.map((one, index) => {
    const checks = checksOf(rules, measures(one), states)
    const evaluation = evaluate(checks, measures(one), states, index * 60_000)
    states = evaluation.states
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

describe('rules about groups', () => {
  const fresh: AlertRule = {
    name: 'new',
    when: { metric: 'new-group', above: 2, withinMs: 120_000 },
    severity: 'warning',
  }
  const regressed: AlertRule = {
    name: 'back',
    when: { metric: 'regressed-group' },
    severity: 'critical',
  }

  it('raises once for a new group with enough failures, and clears when it is resolved', () => {
    const given: Given[] = [
      { groups: { f: { failures: 2 } } },
      { groups: { f: { failures: 3 } } },
      { groups: { f: { failures: 500 } } },
      { groups: { f: { failures: 500, status: 'resolved' } } },
      { groups: { f: { failures: 501, status: 'open' } } },
    ]
    expect(changesOf([fresh], given)).toEqual([[], ['+new:f'], [], ['-new:f'], []])
  })

  it('does not raise for failures after the window, or for a known group', () => {
    const late = [{}, {}, {}, { groups: { f: { failures: 9 } } }]
    expect(changesOf([fresh], late).flat()).toEqual([])
    expect(changesOf([fresh], [{ groups: { f: { failures: 9, isNew: false } } }])).toEqual([[]])
  })

  it.each<[string, Given]>([
    ['has no open letters', { groups: { f: { failures: 9, hasOpenLetters: false } } }],
    ['is ignored', { groups: { f: { failures: 9, status: 'ignored' } } }],
    ['is removed', {}],
  ])('clears the alert of a new group that %s', (_, after) => {
    const given: Given[] = [{ groups: { f: { failures: 9 } } }, after]
    expect(changesOf([fresh], given)).toEqual([['+new:f'], ['-new:f']])
  })

  it('raises each time that a group regresses', () => {
    const at = (status: GroupMeasures['status']): Given => ({ groups: { f: { status } } })
    expect(
      changesOf([regressed], [at('regressed'), at('regressed'), at('resolved'), at('regressed')]),
    ).toEqual([['+back:f'], [], ['-back:f'], ['+back:f']])
  })

  it('limits a rule to the groups of its queue', () => {
    const groups = { f: { failures: 9 }, g: { failures: 9, queues: ['mail', 'sms'] } }
    expect(changesOf([{ ...fresh, queue: 'sms' }], [{ groups }])).toEqual([['+new:g']])
  })

  it('names error, queue and counts, and has the title apart', () => {
    const [evaluation] = evaluateAll([fresh], [{ groups: { f: { failures: 3 } } }])
    expect(evaluation!.raised).toMatchObject([
      {
        group: 'f',
        queue: 'orders',
        title: 'TypeError: the secret is 1234',
        summary: 'new cause of failures: TypeError in queue orders, 3 failures',
      },
    ])
    expect(evaluation!.raised[0]!.summary).not.toContain('1234')
  })

  it('belongs to no queue if the group is in several, so that a scope hides it', () => {
    const groups = { f: { failures: 3, queues: ['a', 'b'] } }
    const [{ raised }] = evaluateAll([fresh], [{ groups }]) as [Evaluation]
    expect(raised[0]).not.toHaveProperty('queue')
    expect(raised[0]!.summary).toContain('in 2 queues')
  })

  it('raises a bounded number of alerts, and one for the others', () => {
    const many = Object.fromEntries(
      Array.from({ length: maxGroupAlerts + 7 }, (_, index) => [`f${index}`, { failures: 9 }]),
    )
    const [first, second] = evaluateAll([fresh], [{ groups: many }, { groups: many }]) as [
      Evaluation,
      Evaluation,
    ]
    expect(first.raised).toHaveLength(maxGroupAlerts + 1)
    expect(first.raised.at(-1)).toMatchObject({ name: 'new:more', value: 7 })
    expect(second.raised).toEqual([])
    const few = { f0: { failures: 9 } }
    const [, cleared] = evaluateAll([fresh], [{ groups: many }, { groups: few }]) as [
      Evaluation,
      Evaluation,
    ]
    expect(cleared.cleared).toHaveLength(maxGroupAlerts)
    expect(cleared.cleared.map(({ name }) => name)).toContain('new:more')
  })

  it('has one alert per cause, whatever the order of events', () => {
    const status = fc.constantFrom('open', 'ignored', 'resolved', 'regressed')
    const group = fc.record({
      status,
      failures: fc.nat(20),
      isNew: fc.boolean(),
      hasOpenLetters: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(fc.dictionary(fc.constantFrom('f', 'g'), group)), (all) => {
        const given = all.map((groups) => ({ groups }))
        const changes = changesOf([fresh, regressed], given).flat()
        const news = changes.filter((change) => change.startsWith('+new:f'))
        expect(news.length).toBeLessThanOrEqual(1)
        for (const name of ['new:f', 'back:f', 'back:g']) {
          const own = changes.filter((change) => change.slice(1) === name)
          own.forEach((change, index) => expect(change[0]).toBe(index % 2 === 0 ? '+' : '-'))
        }
      }),
    )
  })
})

describe('the rule silent', () => {
  const silent: AlertRule = {
    name: 'silent',
    when: { metric: 'silent', learnMs: 0 },
    forMs: 600_000,
    severity: 'warning',
  }

  it('watches each queue, raises for the one that stops, and clears when it captures', () => {
    const given = Array.from({ length: 90 }, (_, minute) => ({
      queues: {
        a: { captured: minute },
        b: { captured: minute < 40 || minute > 70 ? minute : 40 },
      },
    }))
    const changes = changesOf([silent], given).flatMap((all, minute) =>
      all.map((change) => `${minute} ${change}`),
    )
    expect(changes).toHaveLength(2)
    expect(changes[0]).toMatch(/^5[0-3] \+silent:b$/)
    expect(changes[1]).toBe('71 -silent:b')
  })

  it('describes the silence', () => {
    const given = Array.from({ length: 60 }, (_, minute) => ({
      queues: { a: { captured: Math.min(40, minute) } },
    }))
    const raised = evaluateAll([{ ...silent, queue: 'a', name: 'quiet' }], given).flatMap(
      (one) => one.raised,
    )
    expect(raised).toMatchObject([
      {
        name: 'quiet',
        queue: 'a',
        summary: expect.stringMatching(/^queue a has captured nothing for 1\d(\.\d)? min/),
      },
    ])
  })
})

it('raises by the age of the oldest pending letter', () => {
  const old: AlertRule = {
    name: 'old',
    when: { metric: 'pending-age', above: 3_600_000 },
    severity: 'warning',
  }
  const [evaluation] = evaluateAll([old], [{ pendingAgeMs: 5_400_000 }])
  expect(evaluation!.raised).toMatchObject([
    { summary: 'pending age is 1.5 h, above 1 h', value: 5_400_000 },
  ])
  expect(changesOf([old], [{ pendingAgeMs: 3_600_000 }, {}])).toEqual([[], []])
})

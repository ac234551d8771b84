import { describe, expect, it } from 'vitest'
import { alertRulesSchema } from '../../../src/observers/alerts/schema.ts'
import { defaultAlertRules } from '../../../src/policy/alert-rule.ts'

const good = { name: 'a', when: { metric: 'exhausted', above: 0 }, severity: 'warning' }

describe('alertRulesSchema', () => {
  it('accepts the default rules and an empty list', () => {
    expect(alertRulesSchema.safeParse(defaultAlertRules).success).toBe(true)
    expect(alertRulesSchema.safeParse([]).success).toBe(true)
    expect(
      alertRulesSchema.safeParse([good, { ...good, name: 'b', forMs: 5, queue: 'q' }]).success,
    ).toBe(true)
    const causes = [
      { metric: 'new-group', above: 4, withinMs: 600_000 },
      { metric: 'new-group' },
      { metric: 'regressed-group' },
      { metric: 'silent', learnMs: 0 },
      { metric: 'pending-age', above: 3_600_000 },
    ].map((when, index) => ({ ...good, name: `c${index}`, when }))
    expect(alertRulesSchema.safeParse(causes).success).toBe(true)
  })

  it.each<[string, unknown[]]>([
    ['two rules with one name', [good, good]],
    ['a rule without a threshold', [{ ...good, when: { metric: 'exhausted' } }]],
    ['a rule with both thresholds', [{ ...good, when: { metric: 'parked', above: 1, below: 2 } }]],
    ['an unknown metric', [{ ...good, when: { metric: 'moon', above: 1 } }]],
    ['the metric of breakers', [{ ...good, when: { metric: 'breaker-open', above: 0 } }]],
    ['a name reserved for breakers', [{ ...good, name: 'breaker-open:orders' }]],
    ['a name with a line break', [{ ...good, name: 'a\nb' }]],
    ['no name', [{ ...good, name: '' }]],
    [
      'a threshold that is not a number',
      [{ ...good, when: { metric: 'parked', above: Number.NaN } }],
    ],
    [
      'the utilisation of one queue',
      [{ ...good, when: { metric: 'utilisation', above: 1 }, queue: 'q' }],
    ],
    ['a silence with a threshold', [{ ...good, when: { metric: 'silent', above: 1 } }]],
    [
      'a regressed group with a threshold',
      [{ ...good, when: { metric: 'regressed-group', below: 1 } }],
    ],
    [
      'a new group with another window',
      [{ ...good, when: { metric: 'new-group', withinMs: 864e6 } }],
    ],
    [
      'a window of another metric',
      [{ ...good, when: { metric: 'parked', above: 1, withinMs: 5e5 } }],
    ],
    ['an unknown key', [{ ...good, treshold: 1 }]],
    ['an unknown severity', [{ ...good, severity: 'info' }]],
  ])('rejects %s', (_, rules) => {
    expect(alertRulesSchema.safeParse(rules).success).toBe(false)
  })
})

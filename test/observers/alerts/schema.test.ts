import { describe, expect, it } from 'vitest'
import { alertRulesSchema } from '../../../src/observers/alerts/schema.ts'
import { defaultAlertRules } from '../../../src/policy/alerts.ts'

const good = { name: 'a', when: { metric: 'exhausted', above: 0 }, severity: 'warning' }

describe('alertRulesSchema', () => {
  it('takes the default rules, and none', () => {
    expect(alertRulesSchema.safeParse(defaultAlertRules).success).toBe(true)
    expect(alertRulesSchema.safeParse([]).success).toBe(true)
    expect(
      alertRulesSchema.safeParse([good, { ...good, name: 'b', forMs: 5, queue: 'q' }]).success,
    ).toBe(true)
  })

  it.each<[string, unknown[]]>([
    ['two rules of one name', [good, good]],
    ['a rule without a threshold', [{ ...good, when: { metric: 'exhausted' } }]],
    ['one with both thresholds', [{ ...good, when: { metric: 'parked', above: 1, below: 2 } }]],
    ['an unknown metric', [{ ...good, when: { metric: 'moon', above: 1 } }]],
    ['the metric of breakers', [{ ...good, when: { metric: 'breaker-open', above: 0 } }]],
    ['a name that breakers use', [{ ...good, name: 'breaker-open:orders' }]],
    ['a name with a line break', [{ ...good, name: 'a\nb' }]],
    ['no name', [{ ...good, name: '' }]],
    ['a threshold that is no number', [{ ...good, when: { metric: 'parked', above: Number.NaN } }]],
    [
      'the utilisation of one queue',
      [{ ...good, when: { metric: 'utilisation', above: 1 }, queue: 'q' }],
    ],
    ['an unknown key', [{ ...good, treshold: 1 }]],
    ['an unknown severity', [{ ...good, severity: 'info' }]],
  ])('refuses %s', (_, rules) => {
    expect(alertRulesSchema.safeParse(rules).success).toBe(false)
  })
})

import { expect, it } from 'vitest'
import { describeRule } from '../../web/src/format/rule.ts'

it.each([
  ['code:ECONNRESET', 'the code ECONNRESET'],
  ['user:own: rule', 'your rule “own: rule”'],
  ['message:rate limit', 'the words “rate limit” of the message'],
  ['status:403 rate limit', 'the HTTP status 403 rate limit'],
  ['retry-after', 'the time after which the service allows a retry'],
  ['unknown', 'no rule: nothing about the error is known'],
])('the rule %s is described as %s', (rule, text) => {
  expect(describeRule(rule)).toBe(text)
})

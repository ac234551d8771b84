/** The rule that classified a failure, for people: `code:ECONNRESET` is `the code ECONNRESET`. */
export function describeRule(rule: string): string {
  const at = rule.indexOf(':')
  const [kind, value] = at === -1 ? [rule, ''] : [rule.slice(0, at), rule.slice(at + 1)]
  switch (kind) {
    case 'user':
      return `your rule “${value}”`
    case 'code':
      return `the code ${value}`
    case 'name':
      return `the name of the error, ${value}`
    case 'status':
      return `the HTTP status ${value}`
    case 'message':
      return `the words “${value}” of the message`
    case 'retry-after':
      return 'the time after which the service allows a retry'
    case 'retryable':
      return 'the error, which says that it can be retried'
    default:
      return 'no rule: nothing about the error is known'
  }
}

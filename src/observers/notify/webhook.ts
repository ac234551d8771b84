import { RedriveError } from '../../errors.ts'
import { toTimestamp } from '../../letter/time.ts'
import { sign } from '../../backends/http/signature.ts'
import { notifier, type Compose, type Notifier, type NotifierOptions } from './notifier.ts'

export interface WebhookOptions extends NotifierOptions {
  /**
   * Key that signs every request in the header `redrive-signature`; receivers check it with
   * `verifySignature`.
   */
  secret?: string
  /** Further headers, such as authorization. */
  headers?: Record<string, string>
}

/**
 * Posts each alert as `{ type, state, alert, at, id }`. The header `redrive-id` has the id as well;
 * a receiver that has seen the id can ignore the request as a repeated attempt.
 */
export function webhook(options: WebhookOptions): Notifier {
  const { secret } = options
  if (secret === '') throw new RedriveError('INVALID_CONFIG', 'webhook: secret must not be empty')
  const headers = headersOf(options.headers ?? {})
  const compose: Compose = ({ type, state, alert }, id, clock) => {
    const body = JSON.stringify({ type, state, alert, at: toTimestamp(clock.now()), id })
    const signature = (): Record<string, string> =>
      secret === undefined ? {} : { 'redrive-signature': sign(body, secret, clock.now()) }
    return { body, headers: () => ({ ...headers, 'redrive-id': id, ...signature() }) }
  }
  return notifier('webhook', options, compose, ['secret', 'headers'])
}

/**
 * Header names in lower case, so that none duplicates ours. The platform's own error would contain
 * the value.
 */
function headersOf(given: Record<string, string>): Record<string, string> {
  const headers = new Headers()
  for (const [name, value] of Object.entries(given))
    try {
      headers.set(name, value)
    } catch {
      throw new RedriveError(
        'INVALID_CONFIG',
        `webhook: header ${JSON.stringify(name)} is not valid`,
      )
    }
  return Object.fromEntries(headers)
}

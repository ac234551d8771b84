import { validateHeaderName, validateHeaderValue } from 'node:http'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { parseWebhookSecret, signWebhook } from '../../backends/http/signature.ts'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { createHttpSender, type HttpOptions } from './http-sender.ts'
import { checkTargetOptions, type Notification, type Target, type TargetOptions } from './target.ts'

export interface WebhookOptions extends HttpOptions, TargetOptions {
  /**
   * Signs every request as Standard Webhooks define it: `whsec_` and 24 to 64 bytes in base64.
   * While a secret is rotated, give the new and the old one.
   */
  secret?: string | readonly string[]
  /** Further headers, such as authorization. */
  headers?: Readonly<Record<string, string>>
}

const known = keysOf<WebhookOptions>({
  url: true,
  private: true,
  timeoutMs: true,
  clock: true,
  secret: true,
  headers: true,
  digestMs: true,
  remindMs: true,
  content: true,
})

/**
 * Posts `{ type, timestamp, data }` with the headers `webhook-id`, `webhook-timestamp` and
 * `webhook-signature` of Standard Webhooks. A receiver that has seen the id can ignore the request.
 */
export function webhook(options: WebhookOptions): Target {
  checkKeys('webhook options', options, known, { code: 'INVALID_CONFIG' })
  const { clock = systemClock } = options
  const secrets = [options.secret ?? []].flat()
  const keys = secrets.map(readSecret)
  const headers = readHeaders(options.headers ?? {})
  const hidden = [...secrets, ...Object.values(headers)]
  const send = createHttpSender({ ...options, what: 'webhook', secrets: hidden })
  return {
    kind: 'webhook',
    ...checkTargetOptions('webhook', options),
    send(notification) {
      const { id } = notification
      const body = JSON.stringify(bodyOf(notification))
      const seconds = Math.floor(clock.now() / 1000)
      return send(body, {
        ...headers,
        'webhook-id': id,
        'webhook-timestamp': String(seconds),
        ...(keys.length === 0 ? {} : { 'webhook-signature': signWebhook(id, seconds, body, keys) }),
      })
    },
  }
}

function bodyOf({ kind, at, changes, stillRaised, link }: Notification): object {
  const linked = link === undefined ? {} : { link }
  if (kind === 'test') return { type: 'alert.test', timestamp: at, data: linked }
  if (kind === 'digest')
    return { type: 'alert.digest', timestamp: at, data: { changes, stillRaised, ...linked } }
  const { state, alert } = changes[0]!
  return { type: `alert.${state}`, timestamp: at, data: { alert, ...linked } }
}

function readSecret(secret: string): Buffer {
  const key = parseWebhookSecret(secret)
  if (key) return key
  throw new RedriveError(
    'INVALID_CONFIG',
    'webhook: secret must be whsec_ and 24 to 64 bytes in base64: create one with echo "whsec_$(openssl rand -base64 32)"',
  )
}

/**
 * Header names in lower case, so that none duplicates ours. The platform's own error would contain
 * the value.
 */
function readHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(given))
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
      headers[name.toLowerCase()] = value
    } catch {
      throw new RedriveError(
        'INVALID_CONFIG',
        `webhook: header ${JSON.stringify(name)} is not valid`,
      )
    }
  return headers
}

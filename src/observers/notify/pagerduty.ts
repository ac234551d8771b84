import { createHash } from 'node:crypto'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import { createHttpSender, type HttpOptions } from './http-sender.ts'
import {
  checkTargetOptions,
  toLine,
  type Notification,
  type Target,
  type TargetOptions,
} from './target.ts'

/** Incidents are not collected: there is no `digestMs`. */
export interface PagerDutyOptions
  extends Omit<HttpOptions, 'url'>, Omit<TargetOptions, 'digestMs'> {
  /** The integration key of a service, for the Events API v2. */
  routingKey: string
  /** URL of another region or a proxy. Default: https://events.pagerduty.com/v2/enqueue. */
  url?: string
  /**
   * Source of the alert in PagerDuty. Use one per store if several stores share a service. Default:
   * `redrive`.
   */
  source?: string
}

const defaultUrl = 'https://events.pagerduty.com/v2/enqueue'
const known = keysOf<PagerDutyOptions>({
  url: true,
  private: true,
  timeoutMs: true,
  clock: true,
  routingKey: true,
  source: true,
  remindMs: true,
  content: true,
})

/** Opens an incident for each alert, and resolves it when the alert clears, in any process. */
export function pagerduty(options: PagerDutyOptions): Target {
  checkKeys('pagerduty options', options, known, { code: 'INVALID_CONFIG' })
  const { routingKey, url = defaultUrl, source = 'redrive' } = options
  if (routingKey === '')
    throw new RedriveError('INVALID_CONFIG', 'pagerduty: routingKey must not be empty')
  const send = createHttpSender({ ...options, url, what: 'pagerduty', secrets: [routingKey] })
  const post = (event: object): ReturnType<typeof send> =>
    send(JSON.stringify({ routing_key: routingKey, ...event }))
  return {
    kind: 'pagerduty',
    ...checkTargetOptions('pagerduty', options),
    async send(notification) {
      const event = eventOf(notification, source)
      const result = await post(event)
      // A test must not leave an incident open.
      if (notification.kind === 'test' && result.sent)
        return post({ event_action: 'resolve', dedup_key: event.dedup_key })
      return result
    },
  }
}

function eventOf(
  { kind, id, at, changes, link }: Notification,
  source: string,
): { event_action: string; dedup_key: string } {
  const links = link === undefined ? {} : { links: [{ href: link, text: 'Redrive' }] }
  if (kind === 'test') {
    const payload = { summary: 'Redrive test', source, severity: 'info', timestamp: at }
    return { event_action: 'trigger', dedup_key: keyOf(`${source}:${id}`), payload } as never
  }
  const { state, alert } = changes[0]!
  const { name, severity, summary, raisedAt, queue, metric } = alert
  const dedup_key = keyOf(`${source}:${name}`)
  if (state === 'cleared') return { event_action: 'resolve', dedup_key }
  const payload = {
    summary: toLine(`${name}: ${summary}`),
    source,
    severity,
    timestamp: raisedAt,
    class: metric,
    ...(queue === undefined ? {} : { component: toLine(queue) }),
    custom_details: alert,
  }
  return { event_action: 'trigger', dedup_key, payload, ...links } as never
}

const maxKey = 255

function keyOf(name: string): string {
  return name.length <= maxKey ? name : createHash('sha256').update(name).digest('hex')
}

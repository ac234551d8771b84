import { createHash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import { line, notifier, type Compose, type Notifier, type NotifierOptions } from './notifier.ts'

export interface PagerDutyOptions extends Omit<NotifierOptions, 'url'> {
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

const usualUrl = 'https://events.pagerduty.com/v2/enqueue'

/** Opens an incident for each alert, and resolves it when the alert clears, in any process. */
export function pagerduty(options: PagerDutyOptions): Notifier {
  const { routingKey, url = usualUrl, source = 'redrive' } = options
  if (routingKey === '')
    throw new RedriveError('INVALID_CONFIG', 'pagerduty: routingKey must not be empty')
  const compose: Compose = ({ alert, state }) => {
    const { name, severity, summary, raisedAt, queue, metric } = alert
    const payload = {
      summary: line(`${name}: ${summary}`),
      source,
      severity,
      timestamp: raisedAt,
      class: metric,
      ...(queue === undefined ? {} : { component: queue }),
      custom_details: alert,
    }
    const body = {
      routing_key: routingKey,
      dedup_key: keyOf(`${source}:${name}`),
      ...(state === 'raised' ? { event_action: 'trigger', payload } : { event_action: 'resolve' }),
    }
    return { body: JSON.stringify(body), headers: () => ({}) }
  }
  return notifier('pagerduty', { ...options, url }, compose, ['routingKey', 'source'])
}

const maxKey = 255

function keyOf(name: string): string {
  return name.length <= maxKey ? name : createHash('sha256').update(name).digest('hex')
}

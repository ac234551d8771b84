import { RedriveError } from '../../errors.ts'
import { escapeHidden } from '../../letter/payload-view.ts'
import type { Timestamp } from '../../letter/time.ts'
import type { Alert } from '../../policy/alert-rule.ts'

/** A receiver of notifications. Create one with `webhook`, `slack`, `pagerduty` or `email`. */
export interface Target extends TargetOptions {
  kind: 'webhook' | 'slack' | 'pagerduty' | 'email'
  /** Sends a notification once. Never rejects. */
  send(notification: Notification): Promise<SendResult>
}

export interface TargetOptions {
  /**
   * Collects alerts that are not critical for this time and sends them as one message. Default:
   * each alert is sent at once.
   */
  digestMs?: number
  /** Interval of reminders of alerts that are raised and not acknowledged. Default: none. */
  remindMs?: number
  /**
   * Whether notifications contain the titles of groups. Titles come from error messages, which may
   * contain data of payloads. Default: false.
   */
  content?: boolean
}

/** One message to a target. All attempts to send it have the same id and the same content. */
export interface Notification {
  id: string
  at: Timestamp
  kind: 'alert' | 'digest' | 'test'
  changes: NotifiedChange[]
  /** Digest: alerts that were raised before and still are. */
  stillRaised: Alert[]
  /** URL of the server. */
  link?: string
}

export interface NotifiedChange {
  state: 'raised' | 'cleared' | 'reminder'
  alert: Alert
}

/**
 * `answer` is what the receiver said, without secrets. `again`: another attempt can help, after
 * `afterMs` if given.
 */
export type SendResult =
  | { sent: true; answer: string }
  | { sent: false; answer: string; again: boolean; afterMs?: number }

const maxText = 500
const minDigestMs = 1000
const minRemindMs = 60_000
const maxIntervalMs = 14 * 86_400_000
/** An attempt must end long before another process takes the delivery over, after 2 min. */
export const maxTimeoutMs = 60_000

/** A string of rules or queues as one bounded line with escaped hidden characters. */
export function toLine(text: string): string {
  const escaped = escapeHidden(text.slice(0, maxText + 1)).replaceAll(/[\r\n\t]/g, ' ')
  return escaped.length > maxText ? `${escaped.slice(0, maxText).toWellFormed()}…` : escaped
}

/** Checks the options that all targets have, and returns those that are given. */
export function checkTargetOptions(what: string, options: TargetOptions): TargetOptions {
  const { digestMs, remindMs, content } = options
  checkMs(what, 'digestMs', digestMs, minDigestMs, maxIntervalMs)
  checkMs(what, 'remindMs', remindMs, minRemindMs, maxIntervalMs)
  return {
    ...(digestMs === undefined ? {} : { digestMs }),
    ...(remindMs === undefined ? {} : { remindMs }),
    ...(content === undefined ? {} : { content }),
  }
}

export function checkTimeoutMs(what: string, timeoutMs: number): void {
  checkMs(what, 'timeoutMs', timeoutMs, 1, maxTimeoutMs)
}

function checkMs(
  what: string,
  key: string,
  value: number | undefined,
  minMs: number,
  maxMs: number,
): void {
  if (value === undefined || (value >= minMs && value <= maxMs)) return
  throw new RedriveError(
    'INVALID_CONFIG',
    `${what}: ${key} must be a number from ${minMs} to ${maxMs}, got ${value}`,
  )
}

import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys } from '../../check/keys.ts'
import { escapeHidden } from '../../letter/payload-view.ts'
import type { EventOf, RedriveEvent } from '../../observer.ts'
import { Sender, type Message } from './sender.ts'

/**
 * An observer that sends alerts and ignores all other events. It returns at once; a failed delivery
 * rejects later, and the hub emits it as `error`.
 */
export interface Notifier {
  (event: RedriveEvent): Promise<void> | undefined
  /** Its events are redacted. */
  readonly leavesProcess: boolean
  /** Resolves when all notifications are sent. Await it before the process exits. */
  idle(): Promise<void>
  /** Notifications that were dropped because too many waited. */
  dropped(): number
}

export interface NotifierOptions {
  /** http or https. Redirects are not followed. */
  url: string
  /** Maximum time for a response. Default: 5 s. */
  timeoutMs?: number
  clock?: Clock
}

/** The message for an alert. All attempts have the same id. */
export type Compose = (event: EventOf<'alert'>, id: string, clock: Clock) => Message

const usualTimeoutMs = 5000

/** `also` lists the further options of this kind of notifier. */
export function notifier(
  what: string,
  options: NotifierOptions,
  compose: Compose,
  also: readonly string[] = [],
): Notifier {
  const known = ['url', 'timeoutMs', 'clock', ...also]
  checkKeys(`${what} options`, options, known, { code: 'INVALID_CONFIG' })
  const { timeoutMs = usualTimeoutMs, clock = systemClock } = options
  if (!(timeoutMs >= 1 && timeoutMs <= 600_000))
    throw new RedriveError(
      'INVALID_CONFIG',
      `${what}: timeoutMs must be a number from 1 to 600000, got ${timeoutMs}`,
    )
  const sender = new Sender({ what, url: addressOf(what, options.url), timeoutMs, clock })
  const observe = (event: RedriveEvent): Promise<void> | undefined =>
    event.type === 'alert' ? sender.send(compose(event, clock.id(), clock)) : undefined
  return Object.assign(observe, {
    leavesProcess: true,
    idle: () => sender.idle(),
    dropped: () => sender.dropped,
  })
}

/** The error does not contain the URL: for some services it is the secret. */
function addressOf(what: string, url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const web = parsed?.protocol === 'http:' || parsed?.protocol === 'https:'
  if (parsed && web && parsed.username === '' && parsed.password === '') return parsed
  throw new RedriveError(
    'INVALID_CONFIG',
    `${what}: url must begin with https:// or http:// and contain no user or password`,
  )
}

const maxText = 500

/** A string of rules or queues as one bounded line with escaped hidden characters. */
export function line(text: string): string {
  const escaped = escapeHidden(text.slice(0, maxText + 1)).replaceAll(/[\n\t]/g, ' ')
  return escaped.length > maxText ? `${escaped.slice(0, maxText).toWellFormed()}…` : escaped
}

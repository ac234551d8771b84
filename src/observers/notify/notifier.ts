import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys } from '../../check/keys.ts'
import { escapeHidden } from '../../letter/payload-view.ts'
import type { EventOf, RedriveEvent } from '../../observer.ts'
import { Sender, type Message } from './sender.ts'

/**
 * An observer that sends alerts on, and hears nothing else. It returns at once; what cannot be delivered rejects later, so the
 * hub tells it as `error`.
 */
export interface Notifier {
  (event: RedriveEvent): Promise<void> | undefined
  /** Resolves when nothing is left to send. Worth waiting for before a process ends. */
  idle(): Promise<void>
  /** Notifications that were dropped because too many waited. */
  dropped(): number
}

export interface NotifierOptions {
  /** http or https. Redirects are not followed. */
  url: string
  /** How long the other side may take to answer. 5 s unless said. */
  timeoutMs?: number
  clock?: Clock
}

/** What to send for an alert. It has the same id however often it is tried. */
export type Compose = (event: EventOf<'alert'>, id: string, clock: Clock) => Message

const usualTimeoutMs = 5000

/** `also` names the options that this kind of notifier has besides. */
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
    throw new RedriveError('INVALID_CONFIG', `${what}: timeoutMs must be from 1 to 600000`)
  const sender = new Sender({ what, url: addressOf(what, options.url), timeoutMs, clock })
  const observe = (event: RedriveEvent): Promise<void> | undefined =>
    event.type === 'alert' ? sender.send(compose(event, clock.id(), clock)) : undefined
  return Object.assign(observe, {
    idle: () => sender.idle(),
    dropped: () => sender.dropped,
  })
}

/** The message must not show the address: for some services it is the secret. */
function addressOf(what: string, url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const web = parsed?.protocol === 'http:' || parsed?.protocol === 'https:'
  if (parsed && web && parsed.username === '' && parsed.password === '') return parsed
  throw new RedriveError(
    'INVALID_CONFIG',
    `${what}: url must begin with https:// or http:// and have no user or password in it`,
  )
}

const maxText = 500

/** Text of rules and queues, bounded, in one line and with nothing hidden in it. */
export function line(text: string): string {
  const shown = escapeHidden(text.slice(0, maxText + 1)).replaceAll(/[\n\t]/g, ' ')
  return shown.length > maxText ? `${shown.slice(0, maxText).toWellFormed()}…` : shown
}

import type * as Nodemailer from 'nodemailer'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { endsWithin } from '../../clock/ends-within.ts'
import { RedriveError } from '../../errors.ts'
import { formatMessage } from './message.ts'
import {
  checkTargetOptions,
  checkTimeoutMs,
  toLine,
  type Notification,
  type SendResult,
  type Target,
  type TargetOptions,
} from './target.ts'

export interface EmailOptions extends TargetOptions {
  /** SMTP server with user and password, such as smtps://user:password@mail.example.com. */
  url: string
  /** Address of the sender. */
  from: string
  /** Addresses of the recipients. */
  to: string | readonly string[]
  /**
   * Whether a connection without TLS is allowed, for a server on this machine. Default: false; a
   * connection by smtp: must then be upgraded with STARTTLS.
   */
  plaintext?: boolean
  /** Maximum time for a delivery, at most 60 s. Default: 30 s. */
  timeoutMs?: number
  clock?: Clock
}

const known = keysOf<EmailOptions>({
  url: true,
  from: true,
  to: true,
  plaintext: true,
  timeoutMs: true,
  clock: true,
  digestMs: true,
  remindMs: true,
  content: true,
})
const defaultTimeoutMs = 30_000
const maxRecipients = 50
/** One address, without a name, a comment or a list. */
const address = /^[^\s@<>,;:"()[\]\\\p{C}]{1,64}@[^\s@<>,;:"()\\\p{C}]{1,255}$/u

/** Sends alerts by SMTP. Needs the package nodemailer. */
export function email(options: EmailOptions): Target {
  checkKeys('email options', options, known, { code: 'INVALID_CONFIG' })
  const { url, from, plaintext = false, timeoutMs = defaultTimeoutMs } = options
  const { clock = systemClock } = options
  const to = [options.to].flat()
  checkTimeoutMs('email', timeoutMs)
  const problem = emailProblem(options)
  if (problem) throw new RedriveError('INVALID_CONFIG', `email: ${problem.path} ${problem.text}`)
  const server = new URL(url)
  const settings = {
    host: server.hostname.replace(/^\[(.*)\]$/, '$1'),
    secure: server.protocol === 'smtps:',
    ...(server.port === '' ? {} : { port: Number(server.port) }),
    requireTLS: !plaintext,
    ...(server.username === ''
      ? {}
      : {
          auth: {
            user: decodeURIComponent(server.username),
            pass: decodeURIComponent(server.password),
          },
        }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
  return {
    kind: 'email',
    ...checkTargetOptions('email', options),
    async send(notification) {
      let transport: Nodemailer.Transporter | undefined
      try {
        const { createTransport } = await loadNodemailer()
        transport = createTransport(settings)
        const sending = transport.sendMail({ from, to, ...mailOf(notification) })
        if (await endsWithin(clock, sending, timeoutMs))
          return { sent: true, answer: toLine(String((await sending).response)) }
        sending.catch(() => {})
        return { sent: false, again: true, answer: `no response within ${timeoutMs} ms` }
      } catch (error) {
        return failureOf(error, server.hostname)
      } finally {
        transport?.close()
      }
    },
  }
}

/** The problem of the options and the key it is about. Never quotes the URL. */
function emailProblem({
  url,
  from,
  to,
}: Pick<EmailOptions, 'url' | 'from' | 'to'>): { path: string; text: string } | undefined {
  if (
    !URL.canParse(url) ||
    !/^smtps?:$/.test(new URL(url).protocol) ||
    new URL(url).hostname === ''
  )
    return { path: 'url', text: 'must be a URL such as smtps://user:password@mail.example.com' }
  if (!address.test(from)) return { path: 'from', text: 'must be an address such as a@example.com' }
  const all = [to].flat()
  if (all.length === 0 || all.length > maxRecipients || !all.every((one) => address.test(one)))
    return { path: 'to', text: `must be 1 to ${maxRecipients} addresses such as a@example.com` }
  return undefined
}

async function loadNodemailer(): Promise<typeof Nodemailer> {
  try {
    return await import('nodemailer')
  } catch (cause) {
    throw new RedriveError(
      'INVALID_CONFIG',
      'e-mail needs the package nodemailer: run npm install nodemailer',
      { cause },
    )
  }
}

function mailOf(notification: Notification): object {
  const { id, at } = notification
  const { title, sections } = formatMessage(notification)
  return {
    subject: toLine(title),
    text: `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`,
    date: at,
    // The same for every attempt, so that a mail server can recognise a repetition.
    messageId: `<${id.replaceAll(/[^\w.-]/g, '-')}@redrive>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}

/** The error does not contain what the server answered to a password. */
function failureOf(error: unknown, host: string): SendResult {
  const { code, responseCode, message } = error as {
    code?: unknown
    responseCode?: unknown
    message?: unknown
  }
  if (error instanceof RedriveError) return { sent: false, again: false, answer: String(message) }
  if (code === 'EAUTH' && !(Number(responseCode) < 500))
    return { sent: false, again: false, answer: `${host} rejected the user or the password` }
  if (code === 'ETLS')
    return {
      sent: false,
      again: true,
      answer: `${host} offers no STARTTLS, and plaintext is false`,
    }
  if (typeof responseCode === 'number')
    return { sent: false, again: responseCode < 500, answer: `${host} answered ${responseCode}` }
  const reason = typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? `: ${code}` : ''
  return { sent: false, again: true, answer: `${host} is unreachable${reason}` }
}

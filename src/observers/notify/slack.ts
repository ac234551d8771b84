import { checkKeys, keysOf } from '../../check/keys.ts'
import { createHttpSender, type HttpOptions } from './http-sender.ts'
import { formatMessage } from './message.ts'
import { checkTargetOptions, type Notification, type Target, type TargetOptions } from './target.ts'

/** `url` is the URL of an incoming webhook. */
export interface SlackOptions extends HttpOptions, TargetOptions {}

const known = keysOf<SlackOptions>({
  url: true,
  private: true,
  timeoutMs: true,
  clock: true,
  digestMs: true,
  remindMs: true,
  content: true,
})

/**
 * Posts alerts to a channel. Strings of rules and queues are escaped: they cannot format, link or
 * mention.
 */
export function slack(options: SlackOptions): Target {
  checkKeys('slack options', options, known, { code: 'INVALID_CONFIG' })
  const send = createHttpSender({ ...options, what: 'slack', secrets: [] })
  return {
    kind: 'slack',
    ...checkTargetOptions('slack', options),
    send: (notification) => send(JSON.stringify(bodyOf(notification))),
  }
}

function bodyOf(notification: Notification): object {
  const { title, sections } = formatMessage(notification)
  return {
    // For notifications and old clients; other clients show the blocks.
    text: escapeText([title, ...(sections[0] ?? [])].slice(0, 2).join(' – ')),
    mrkdwn: false,
    blocks: [[title], ...sections].map((lines) => ({
      type: 'section',
      text: { type: 'plain_text', text: escapeText(lines.join('\n')), emoji: false },
    })),
  }
}

/** Maximum length of the text of a block. */
const maxBlock = 3000

function escapeText(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return escaped.length > maxBlock ? `${escaped.slice(0, maxBlock - 1).toWellFormed()}…` : escaped
}

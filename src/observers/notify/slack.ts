import { line, notifier, type Notifier, type NotifierOptions } from './notifier.ts'

/** `url` is the URL of an incoming webhook. */
export type SlackOptions = NotifierOptions

/**
 * Posts each alert to a channel. Strings of rules and queues are escaped: they cannot format, link
 * or mention.
 */
export function slack(options: SlackOptions): Notifier {
  return notifier('slack', options, ({ alert, state }) => {
    const { name, severity, summary, hint } = alert
    const title = state === 'raised' ? severity.toUpperCase() : 'Cleared'
    const lines = [`${title}: ${name}`, summary, ...(state === 'raised' && hint ? [hint] : [])]
    const escapedLines = lines.map((text) => escaped(line(text)))
    const body = {
      // For notifications and old clients; other clients show the blocks.
      text: escapedLines.slice(0, 2).join(' – '),
      mrkdwn: false,
      blocks: escapedLines.map((text) => ({
        type: 'section',
        text: { type: 'plain_text', text, emoji: false },
      })),
    }
    return { body: JSON.stringify(body), headers: () => ({}) }
  })
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

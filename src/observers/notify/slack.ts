import { line, notifier, type Notifier, type NotifierOptions } from './notifier.ts'

/** `url` is that of an incoming webhook. */
export type SlackOptions = NotifierOptions

/** Writes each alert to a channel. Texts of rules and queues are shown as they are: nothing in them formats, links or mentions. */
export function slack(options: SlackOptions): Notifier {
  return notifier('slack', options, ({ alert, state }) => {
    const { name, severity, summary, hint } = alert
    const title = state === 'raised' ? severity.toUpperCase() : 'Cleared'
    const lines = [`${title}: ${name}`, summary, ...(state === 'raised' && hint ? [hint] : [])]
    const shown = lines.map((text) => escaped(line(text)))
    const body = {
      // For notifications and old clients; the blocks take its place where they can be shown.
      text: shown.slice(0, 2).join(' – '),
      mrkdwn: false,
      blocks: shown.map((text) => ({
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

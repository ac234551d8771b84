import type { Alert } from '../../policy/alert-rule.ts'
import { toLine, type NotifiedChange, type Notification } from './target.ts'

/** A notification as plain text, for targets that people read. */
export interface Message {
  title: string
  /** Each section is some lines about one alert. */
  sections: string[][]
}

/** Alerts that a digest describes; the others are only counted. */
const maxDescribed = 40

export function formatMessage(notification: Notification): Message {
  const { kind, changes, stillRaised, link } = notification
  const footer = link === undefined ? [] : [[link]]
  if (kind === 'test')
    return { title: 'Redrive test', sections: [['This is a test. No alert is raised.'], ...footer] }
  if (kind === 'alert') {
    const change = changes[0]!
    return { title: titleOf(change), sections: [describe(change), ...footer] }
  }
  const counts = [
    `${countOf(changes, 'raised')} raised`,
    `${countOf(changes, 'cleared')} cleared`,
    `${stillRaised.length + countOf(changes, 'reminder')} still raised`,
  ]
  const sections = [
    ...changes.map((change) => [titleOf(change), ...describe(change)]),
    ...stillRaised.map((alert) => [`Still raised: ${toLine(alert.name)}`, ...since(alert)]),
  ]
  const more = sections.length - maxDescribed
  return {
    title: `Redrive: ${counts.join(', ')}`,
    sections: [
      ...sections.slice(0, maxDescribed),
      ...(more > 0 ? [[`and ${more} more`]] : []),
      ...footer,
    ],
  }
}

function countOf(changes: readonly NotifiedChange[], state: NotifiedChange['state']): number {
  return changes.filter((change) => change.state === state).length
}

function titleOf({ state, alert }: NotifiedChange): string {
  const name = toLine(alert.name)
  if (state === 'cleared') return `Cleared: ${name}`
  return state === 'reminder' ? `Still raised: ${name}` : `${alert.severity.toUpperCase()}: ${name}`
}

/** What happened, since when, and what to do. */
function describe({ state, alert }: NotifiedChange): string[] {
  const { summary, title, hint } = alert
  return [
    toLine(summary),
    ...(title === undefined ? [] : [toLine(title)]),
    ...since(alert),
    ...(state === 'cleared' || hint === undefined ? [] : [toLine(hint)]),
  ]
}

function since({ raisedAt, clearedAt }: Alert): string[] {
  return [clearedAt === undefined ? `Since ${raisedAt}` : `From ${raisedAt} to ${clearedAt}`]
}

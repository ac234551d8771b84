import type { ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
import type { SummaryView } from 'redrive/api'
import { useNow } from '../../app/preferences.tsx'
import { formatBytes, formatCount } from '../../format/number.ts'
import { firstLine, shortenId, toWords } from '../../format/text.ts'
import { Id } from '../../ui/id.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Age, Time } from '../../ui/time.tsx'

/** A column of the list. Its key is a field of a letter, as saved views have it. */
export interface Column {
  key: string
  label: string
  /** Least width in pixels. */
  width: number
  /** Part of the room that is left. Default: none. */
  grow?: number
  render: (letter: SummaryView) => ReactNode
}

/** Text of letters can be as long as its sender likes. */
const maxChars = 300

function clip(text: string): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
}

/** Name and message of a failure on one line. */
export function failureText({ failure, hidden }: SummaryView): string {
  if (hidden) return `${clip(failure.name)} (message hidden: it needs the permission payload:read)`
  const message = firstLine(failure.message)
  return clip(message === '' ? failure.name : `${failure.name}: ${message}`)
}

/** When a letter is retried. A time that has passed means that it waits for a free worker. */
function NextRetry({ at }: { at: string }) {
  const now = useNow()
  return Date.parse(at) <= now ? (
    <span title="It waits for a free worker.">due</span>
  ) : (
    <Time at={at} />
  )
}

const text = (value: string | undefined): ReactNode =>
  value === undefined || value === '' ? null : <bdi>{clip(value)}</bdi>

const time = (at: string | undefined): ReactNode => (at === undefined ? null : <Time at={at} />)

const known: readonly Column[] = [
  {
    key: 'state',
    label: 'State',
    width: 100,
    render: ({ state }) => <StateBadge state={state} />,
  },
  {
    key: 'failure',
    label: 'Failure',
    width: 260,
    grow: 3,
    render: (letter) => <bdi>{failureText(letter)}</bdi>,
  },
  {
    key: 'queue',
    label: 'Queue',
    width: 120,
    grow: 0.6,
    render: ({ queue }) => text(queue),
  },
  {
    key: 'fingerprint',
    label: 'Group',
    width: 116,
    render: ({ fingerprint }) => (
      <Link
        to="/groups/$fingerprint"
        params={{ fingerprint }}
        className="plain mono"
        title={`Open the group ${fingerprint.slice(0, 100)}`}
      >
        {shortenId(fingerprint)}
      </Link>
    ),
  },
  {
    key: 'retries',
    label: 'Retries',
    width: 72,
    render: ({ retries, maxRetries }) => (
      <span className="numbers" title={`${retries} of at most ${maxRetries} retries`}>
        {formatCount(retries)} of {formatCount(maxRetries)}
      </span>
    ),
  },
  {
    key: 'deadLetteredAt',
    label: 'Age',
    width: 88,
    render: ({ deadLetteredAt }) => <Age since={deadLetteredAt} />,
  },
  {
    key: 'retryAt',
    label: 'Next retry',
    width: 96,
    render: ({ state, retryAt }) =>
      state === 'pending' && retryAt !== undefined ? <NextRetry at={retryAt} /> : null,
  },
  { key: 'id', label: 'Id', width: 116, render: ({ id }) => <Id id={id} /> },
  {
    key: 'category',
    label: 'Category',
    width: 96,
    render: ({ category }) => toWords(category),
  },
  { key: 'priority', label: 'Priority', width: 80, render: ({ priority }) => priority },
  { key: 'severity', label: 'Severity', width: 80, render: ({ severity }) => severity },
  {
    key: 'reason',
    label: 'Reason',
    width: 120,
    render: ({ reason }) => (reason === undefined ? null : toWords(reason)),
  },
  {
    key: 'tenant',
    label: 'Tenant',
    width: 100,
    grow: 0.3,
    render: ({ tenant }) => text(tenant),
  },
  {
    key: 'tags',
    label: 'Tags',
    width: 120,
    grow: 0.4,
    render: ({ tags }) => text(tags.slice(0, 20).join(', ')),
  },
  { key: 'lane', label: 'Lane', width: 100, grow: 0.3, render: ({ lane }) => text(lane) },
  {
    key: 'failure.code',
    label: 'Error code',
    width: 112,
    render: ({ failure }) => text(failure.code),
  },
  {
    key: 'attempts',
    label: 'Attempts',
    width: 72,
    render: ({ attempts }) => <span className="numbers">{formatCount(attempts)}</span>,
  },
  {
    key: 'occurrences',
    label: 'Occurrences',
    width: 88,
    render: ({ occurrences }) => <span className="numbers">{formatCount(occurrences)}</span>,
  },
  {
    key: 'replays',
    label: 'Replays',
    width: 72,
    render: ({ replays }) => <span className="numbers">{formatCount(replays)}</span>,
  },
  {
    key: 'payload.size',
    label: 'Payload',
    width: 80,
    render: ({ payload }) => <span className="numbers">{formatBytes(payload.size)}</span>,
  },
  { key: 'source.kind', label: 'Source', width: 88, render: ({ source }) => source.kind },
  { key: 'app.version', label: 'App version', width: 96, render: ({ app }) => text(app?.version) },
  { key: 'app.host', label: 'Host', width: 120, render: ({ app }) => text(app?.host) },
  { key: 'failedAt', label: 'Last failure', width: 96, render: ({ failedAt }) => time(failedAt) },
  { key: 'updatedAt', label: 'Changed', width: 96, render: ({ updatedAt }) => time(updatedAt) },
  { key: 'settledAt', label: 'Settled', width: 96, render: ({ settledAt }) => time(settledAt) },
]

export const defaultColumns: readonly string[] = [
  'state',
  'failure',
  'queue',
  'fingerprint',
  'retries',
  'deadLetteredAt',
  'retryAt',
]

/** Columns to choose from. A column of metadata is added by the name of its key. */
export const choosableColumns: readonly { key: string; label: string }[] = known

const metadataKey = /^metadata\.([\w-]+)$/

/** The columns with these keys. The failure is always there: it is the link to the letter. */
export function columnsOf(keys: readonly string[]): Column[] {
  const wanted = keys.includes('failure') ? keys : ['failure', ...keys]
  return wanted.flatMap((key) => known.find((one) => one.key === key) ?? metadataColumn(key) ?? [])
}

function metadataColumn(key: string): Column | undefined {
  const name = metadataKey.exec(key)?.[1]
  if (name === undefined) return undefined
  return {
    key,
    label: name,
    width: 120,
    grow: 0.4,
    render: ({ metadata }) => text(metadataText(metadata[name])),
  }
}

function metadataText(value: unknown): string | undefined {
  if (value === undefined) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The tracks of the grid that rows and head share, and the least width of a row. */
export function layoutOf(columns: readonly Column[]): { tracks: string; minWidth: number } {
  const selection = 32
  const gap = 12
  return {
    tracks: [
      `${selection}px`,
      ...columns.map(({ width, grow }) =>
        grow === undefined ? `${width}px` : `minmax(${width}px, ${grow}fr)`,
      ),
    ].join(' '),
    minWidth: columns.reduce((sum, { width }) => sum + width + gap, selection + 2 * gap),
  }
}

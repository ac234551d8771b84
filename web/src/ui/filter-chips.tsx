import { CloseButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { FilterInput } from 'redrive/api'
import { queries } from '../api/queries.ts'
import { usePreferences } from '../app/preferences.tsx'
import { filterParts, type FilterPart } from '../format/filter.ts'
import { formatTimestamp } from '../format/time.ts'
import classes from './filter-chips.module.css'

/** The conditions of a filter, one chip each. */
export function FilterChips({
  filter,
  onRemove,
}: {
  filter: FilterInput
  /** Absent: the filter is fixed. */
  onRemove?: (part: FilterPart) => void
}) {
  const parts = filterParts(filter)
  if (parts.length === 0) return <span className="dim">all letters</span>
  return (
    <div className={classes.chips}>
      {parts.map((part) => (
        <FilterChip
          key={`${part.key} ${part.value ?? ''}`}
          label={part.label}
          text={<PartText part={part} />}
          name={`${part.label}: ${part.text}`}
          {...(onRemove ? { onRemove: () => onRemove(part) } : {})}
        />
      ))}
    </div>
  )
}

/** One condition: what it is about, its value, and a button that removes it. */
export function FilterChip({
  label,
  text,
  name,
  onRemove,
}: {
  label: string
  text: React.ReactNode
  /** The condition in words, for the button. */
  name: string
  onRemove?: () => void
}) {
  return (
    <span className={classes.chip} data-removable={onRemove ? true : undefined} title={name}>
      <bdi className={classes.label}>{label}</bdi>
      <bdi className="line">{text}</bdi>
      {onRemove && (
        <CloseButton size="xs" aria-label={`Remove the filter ${name}`} onClick={onRemove} />
      )}
    </span>
  )
}

const timeKeys: readonly string[] = ['since', 'until', 'settledBefore', 'expiresBefore']

function PartText({ part }: { part: FilterPart }) {
  const { zone } = usePreferences()
  if (part.key === 'group' && part.value !== undefined)
    return <GroupTitle fingerprint={part.value} fallback={part.text} />
  return timeKeys.includes(part.key) ? formatTimestamp(part.text, zone) : part.text
}

function GroupTitle({ fingerprint, fallback }: { fingerprint: string; fallback: string }) {
  const { data } = useQuery({ ...queries.group(fingerprint), retry: false, staleTime: Infinity })
  return data?.title === undefined || data.title === '' ? fallback : data.title
}

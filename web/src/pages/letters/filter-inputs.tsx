import { useState, type FormEvent, type ReactNode } from 'react'
import { Autocomplete, Button, Group, Stack, TextInput } from '@mantine/core'
import type { SummaryView } from 'redrive/api'
import { usePreferences } from '../../app/preferences.tsx'
import type { TimeZone } from '../../format/time.ts'
import { rangeLabels, rangeNames, readScalar, type LettersSearch } from './letters-search.ts'

interface FieldsProps {
  search: LettersSearch
  onSearch: (search: LettersSearch) => void
  close: () => void
}

function Form({ onApply, children }: { onApply: () => void; children: ReactNode }) {
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault()
    onApply()
  }
  return (
    <form onSubmit={onSubmit}>
      <Stack gap={8}>
        {children}
        <Button type="submit">Apply</Button>
      </Stack>
    </form>
  )
}

/** One value, with those that loaded letters have. */
export function TextField({
  label,
  value,
  options,
  onApply,
}: {
  label: string
  value: string
  options: string[]
  onApply: (value: string) => void
}) {
  const [typed, setTyped] = useState(value)
  return (
    <Form onApply={() => onApply(typed.trim())}>
      <Autocomplete
        size="xs"
        aria-label={label}
        placeholder="The whole value"
        data={options}
        value={typed}
        onChange={setTyped}
        onOptionSubmit={onApply}
        maxLength={1000}
        comboboxProps={{ withinPortal: false }}
        data-autofocus
      />
    </Form>
  )
}

/** A key of the metadata and its value. */
export function MetadataFields({
  search,
  onSearch,
  close,
  letters,
}: FieldsProps & { letters: readonly SummaryView[] }) {
  const [key, setKey] = useState('')
  const [value, setValue] = useState('')
  const keys = [...new Set(letters.slice(0, 500).flatMap(({ metadata }) => Object.keys(metadata)))]
  const apply = (): void => {
    if (key.trim() === '') return
    onSearch({ ...search, metadata: { ...search.metadata, [key.trim()]: readScalar(value) } })
    close()
  }
  return (
    <Form onApply={apply}>
      <Autocomplete
        size="xs"
        label="Key"
        data={keys.slice(0, 50)}
        value={key}
        onChange={setKey}
        maxLength={200}
        required
        comboboxProps={{ withinPortal: false }}
        data-autofocus
      />
      <TextInput
        size="xs"
        label="Value"
        value={value}
        maxLength={1000}
        onChange={({ currentTarget }) => setValue(currentTarget.value)}
      />
    </Form>
  )
}

/** Ranges that end now, or two times. */
export function TimeFields({ search, onSearch, close }: FieldsProps) {
  const { zone } = usePreferences()
  const { since, until, last: _, ...rest } = search
  const [from, setFrom] = useState(toInput(since, zone))
  const [to, setTo] = useState(toInput(until, zone))
  const apply = (): void => {
    const start = fromInput(from, zone)
    const end = fromInput(to, zone)
    onSearch({ ...rest, ...(start ? { since: start } : {}), ...(end ? { until: end } : {}) })
    close()
  }
  return (
    <Stack gap={8}>
      <Group gap={4}>
        {rangeNames.map((range) => (
          <Button
            key={range}
            variant={search.last === range ? 'light' : 'default'}
            onClick={() => {
              onSearch({ ...rest, last: range })
              close()
            }}
          >
            {rangeLabels[range]}
          </Button>
        ))}
      </Group>
      <Form onApply={apply}>
        <TextInput
          size="xs"
          type="datetime-local"
          label={`Dead-lettered from (${zone === 'UTC' ? 'UTC' : 'local time'})`}
          value={from}
          onChange={({ currentTarget }) => setFrom(currentTarget.value)}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          label="until before"
          value={to}
          onChange={({ currentTarget }) => setTo(currentTarget.value)}
        />
      </Form>
    </Stack>
  )
}

/** A timestamp as the field of the browser has it: without a zone, to the minute. */
function toInput(at: string | undefined, zone: TimeZone): string {
  if (at === undefined) return ''
  const date = new Date(at)
  const shift = zone === 'UTC' ? 0 : date.getTimezoneOffset() * 60_000
  return new Date(date.getTime() - shift).toISOString().slice(0, 16)
}

function fromInput(value: string, zone: TimeZone): string | undefined {
  const ms = Date.parse(zone === 'UTC' ? `${value}Z` : value)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

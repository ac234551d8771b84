import { useEffect, useRef, useState } from 'react'
import { Button, Checkbox, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import type { SummaryView } from 'redrive/api'
import { withoutPart } from '../../format/filter.ts'
import { FilterChip, FilterChips } from '../../ui/filter-chips.tsx'
import { Icon } from '../../ui/icon.tsx'
import { AddFilter } from './add-filter.tsx'
import classes from './filter-bar.module.css'
import { isFiltered, rangeLabels, withoutFilter, type LettersSearch } from './letters-search.ts'

const typingMs = 300

export interface FilterBarProps {
  search: LettersSearch
  onSearch: (search: LettersSearch) => void
  hasFullText: boolean
  /** Letters that are loaded: their values are offered. */
  letters: readonly SummaryView[]
}

/** What the list is limited to, and how to change that. */
export function FilterBar({ search, onSearch, hasFullText, letters }: FilterBarProps) {
  const { last, words: _, text: __, ...rest } = search
  const { order: _o, payload: _p, view: _v, columns: _c, ...filter } = rest
  return (
    <div className={classes.bar} role="search" aria-label="Filter letters">
      <TextFilter search={search} onSearch={onSearch} hasFullText={hasFullText} />
      {last !== undefined && (
        <FilterChip
          label="time"
          text={rangeLabels[last]}
          name={`time: ${rangeLabels[last]}`}
          onRemove={() => onSearch(withoutKey(search, 'last'))}
        />
      )}
      {Object.keys(filter).length > 0 && (
        <FilterChips filter={filter} onRemove={(part) => onSearch(withoutPart(search, part))} />
      )}
      <AddFilter search={search} onSearch={onSearch} letters={letters} />
      {isFiltered(search) && (
        <Button
          variant="subtle"
          color="gray"
          onClick={() => onSearch(withoutFilter(search))}
          title="Show all letters"
        >
          Clear filters
        </Button>
      )}
    </div>
  )
}

function withoutKey<K extends keyof LettersSearch>(search: LettersSearch, key: K): LettersSearch {
  const { [key]: _, ...rest } = search
  return rest
}

/** Words of a failure. The list follows when the reader pauses. */
function TextFilter({ search, onSearch, hasFullText }: Omit<FilterBarProps, 'letters'>) {
  const key = hasFullText ? 'words' : 'text'
  const given = search[key] ?? search.text ?? search.words ?? ''
  const [typed, setTyped] = useState(given)
  const latest = useRef(given)
  useEffect(() => {
    if (given === latest.current) return
    latest.current = given
    setTyped(given)
  }, [given])
  const apply = (text: string): void => {
    latest.current = text.trim()
    const rest = withoutKey(withoutKey(search, 'text'), 'words')
    onSearch(text.trim() === '' ? withoutKey(rest, 'payload') : { ...rest, [key]: text.trim() })
  }
  const applyLater = useDebouncedCallback(apply, typingMs)
  return (
    <>
      <TextInput
        className={classes.text}
        size="xs"
        type="search"
        aria-label={hasFullText ? 'Search words in letters' : 'Search errors and queues'}
        placeholder={hasFullText ? 'Words in messages and stacks' : 'Part of an error or a queue'}
        leftSection={<Icon name="search" size={14} />}
        value={typed}
        maxLength={1000}
        onChange={({ currentTarget }) => {
          setTyped(currentTarget.value)
          applyLater(currentTarget.value)
        }}
        onKeyDown={({ key: pressed }) => pressed === 'Enter' && apply(typed)}
      />
      {hasFullText && search.words !== undefined && (
        <Checkbox
          size="xs"
          label="also in payloads"
          checked={search.payload === true}
          onChange={({ currentTarget }) => {
            const rest = withoutKey(search, 'payload')
            onSearch(currentTarget.checked ? { ...rest, payload: true } : rest)
          }}
        />
      )}
    </>
  )
}

import { useState } from 'react'
import { Button, Popover, Stack, Text, UnstyledButton } from '@mantine/core'
import { categories, priorities, reasons, type SummaryView } from 'redrive/api'
import { capitalize, toWords } from '../../format/text.ts'
import { filterLabels } from '../../format/filter.ts'
import { stateNames } from '../../ui/state.tsx'
import classes from './filter-bar.module.css'
import { ChooseSome, GroupChoice, QueueChoice } from './filter-choices.tsx'
import { MetadataFields, TextField, TimeFields } from './filter-inputs.tsx'
import type { LettersSearch } from './letters-search.ts'

/** What the menu offers, in this order. */
const offered = [
  'queue',
  'state',
  'group',
  'category',
  'priority',
  'reason',
  'time',
  'tag',
  'tenant',
  'metadata',
  'lane',
  'sourceId',
] as const
type Offered = (typeof offered)[number]

interface AddFilterProps {
  search: LettersSearch
  onSearch: (search: LettersSearch) => void
  letters: readonly SummaryView[]
}

/** A menu of conditions. Each offers the values that exist. */
export function AddFilter(props: AddFilterProps) {
  const [isOpen, setOpen] = useState(false)
  const [field, setField] = useState<Offered>()
  const close = (): void => {
    setOpen(false)
    setField(undefined)
  }
  return (
    <Popover opened={isOpen} onChange={(open) => !open && close()} width={280} trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          onClick={() => (isOpen ? close() : setOpen(true))}
          aria-expanded={isOpen}
        >
          Add filter
        </Button>
      </Popover.Target>
      <Popover.Dropdown p={8} aria-label="Add a filter">
        {field === undefined ? (
          <Stack gap={0}>
            {offered.map((one) => (
              <UnstyledButton key={one} className={classes.option} onClick={() => setField(one)}>
                {capitalize(labelOf(one))}
              </UnstyledButton>
            ))}
          </Stack>
        ) : (
          <Stack gap={8}>
            <Text size="sm" fw={600}>
              {capitalize(labelOf(field))}
            </Text>
            <FieldEditor {...props} field={field} close={close} />
          </Stack>
        )}
      </Popover.Dropdown>
    </Popover>
  )
}

function labelOf(field: Offered): string {
  return field === 'time' ? 'time range' : filterLabels[field]
}

function FieldEditor({
  field,
  close,
  search,
  onSearch,
  letters,
}: AddFilterProps & { field: Offered; close: () => void }) {
  const set = (change: LettersSearch): void => onSearch({ ...search, ...change })
  const list = (key: 'queue' | 'state' | 'group' | 'category' | 'priority') => ({
    label: capitalize(filterLabels[key]),
    chosen: [search[key] ?? []].flat(),
    onChoose: (values: string[]): void => set({ [key]: values.length === 0 ? undefined : values }),
  })
  switch (field) {
    case 'queue':
      return <QueueChoice {...list('queue')} />
    case 'group':
      return <GroupChoice {...list('group')} />
    case 'state':
      return <ChooseSome {...list('state')} options={stateNames.map(named)} />
    case 'category':
      return <ChooseSome {...list('category')} options={categories.map(named)} />
    case 'priority':
      return <ChooseSome {...list('priority')} options={priorities.map(named)} />
    case 'reason':
      return (
        <ChooseSome
          label="Reason"
          chosen={search.reason === undefined ? [] : [search.reason]}
          onChoose={(values) => set({ reason: values.at(-1) } as LettersSearch)}
          options={reasons.map(named)}
        />
      )
    case 'time':
      return <TimeFields search={search} onSearch={onSearch} close={close} />
    case 'metadata':
      return <MetadataFields search={search} onSearch={onSearch} letters={letters} close={close} />
    default:
      return (
        <TextField
          label={capitalize(filterLabels[field])}
          value={search[field] ?? ''}
          options={valuesOf(letters, field)}
          onApply={(value) => {
            set({ [field]: value === '' ? undefined : value })
            close()
          }}
        />
      )
  }
}

function named(value: string): { value: string; label: string } {
  return { value, label: toWords(value) }
}

const maxOffered = 50

/** Values that loaded letters have. */
function valuesOf(letters: readonly SummaryView[], field: Offered): string[] {
  const values = letters.flatMap((letter) => {
    if (field === 'tag') return letter.tags
    if (field === 'tenant') return letter.tenant ?? []
    return field === 'lane' ? (letter.lane ?? []) : []
  })
  return [...new Set(values)].filter((value) => value !== '').slice(0, maxOffered)
}

import { useState } from 'react'
import { Button, Checkbox, Group, Popover, Stack, TextInput } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { choosableColumns, defaultColumns } from './columns.tsx'
import classes from './filter-bar.module.css'
import type { LettersSearch } from './letters-search.ts'

/** The columns of the list: those of the address, or else those that this browser keeps. */
export function useColumns(
  search: LettersSearch,
  onSearch: (search: LettersSearch) => void,
): { keys: readonly string[]; setKeys: (keys: readonly string[]) => void } {
  const [kept, setKept] = useLocalStorage<readonly string[]>({
    key: 'redrive-letter-columns',
    defaultValue: defaultColumns,
    getInitialValueInEffect: false,
  })
  const setKeys = (keys: readonly string[]): void =>
    search.columns ? onSearch({ ...search, columns: [...keys] }) : setKept(keys)
  return { keys: search.columns ?? (Array.isArray(kept) ? kept : defaultColumns), setKeys }
}

/** Chooses the columns of the list. */
export function ColumnMenu({
  keys,
  onChange,
}: {
  keys: readonly string[]
  onChange: (keys: readonly string[]) => void
}) {
  const [metadata, setMetadata] = useState('')
  const added = keys
    .filter((key) => key.startsWith('metadata.'))
    .map((key) => ({ key, label: `metadata ${key.slice('metadata.'.length)}` }))
  const toggle = (key: string): void =>
    onChange(keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key])
  const add = (): void => {
    const key = `metadata.${metadata.trim()}`
    if (/^metadata\.[\w-]+$/.test(key) && !keys.includes(key)) onChange([...keys, key])
    setMetadata('')
  }
  return (
    <Popover width={260} position="bottom-end" trapFocus>
      <Popover.Target>
        <Button variant="default">Columns</Button>
      </Popover.Target>
      <Popover.Dropdown p={8} aria-label="Columns">
        <Stack gap={8}>
          <div className={classes.options} role="group" aria-label="Columns">
            {[...choosableColumns, ...added].map(({ key, label }) => (
              <Checkbox
                key={key}
                size="xs"
                py={4}
                label={label}
                disabled={key === 'failure'}
                checked={key === 'failure' || keys.includes(key)}
                onChange={() => toggle(key)}
              />
            ))}
          </div>
          <Group gap={4} wrap="nowrap">
            <TextInput
              size="xs"
              flex={1}
              placeholder="Key of the metadata"
              aria-label="Key of the metadata"
              maxLength={80}
              value={metadata}
              onChange={({ currentTarget }) => setMetadata(currentTarget.value)}
              onKeyDown={({ key }) => key === 'Enter' && add()}
            />
            <Button variant="default" onClick={add} disabled={metadata.trim() === ''}>
              Add
            </Button>
          </Group>
          <Button variant="subtle" onClick={() => onChange(defaultColumns)}>
            Show the usual columns
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

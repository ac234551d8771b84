import { useState } from 'react'
import { Checkbox, Stack, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { queries } from '../../api/queries.ts'
import { formatCount } from '../../format/number.ts'
import { Loaded, SkeletonRows } from '../../ui/loading.tsx'
import classes from './filter-bar.module.css'

interface ListProps {
  label: string
  chosen: readonly string[]
  onChoose: (values: string[]) => void
}

interface Option {
  value: string
  label: string
  count?: number
}

/** Long lists have a field that finds values. */
const manyOptions = 8
const maxShown = 100
const maxChars = 100

/** Values to tick. The list follows at once. */
export function ChooseSome({
  label,
  chosen,
  onChoose,
  options,
}: ListProps & { options: readonly Option[] }) {
  const [typed, setTyped] = useState('')
  const shown = options
    .filter((one) => one.label.toLowerCase().includes(typed.trim().toLowerCase()))
    .slice(0, maxShown)
  const toggle = (value: string): void =>
    onChoose(chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value])
  return (
    <Stack gap={8}>
      {options.length > manyOptions && (
        <TextInput
          size="xs"
          placeholder="Find"
          aria-label={`Find a value of ${label}`}
          value={typed}
          data-autofocus
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      )}
      <div className={classes.options} role="group" aria-label={label}>
        {shown.map((option) => (
          <Checkbox
            key={option.value}
            size="xs"
            py={4}
            checked={chosen.includes(option.value)}
            onChange={() => toggle(option.value)}
            label={<OptionLabel option={option} />}
          />
        ))}
        {shown.length === 0 && (
          <Text size="sm" c="dimmed">
            No value has this name.
          </Text>
        )}
      </div>
    </Stack>
  )
}

function OptionLabel({ option: { label, count } }: { option: Option }) {
  return (
    <>
      <bdi>{label.length > maxChars ? `${label.slice(0, maxChars)}…` : label}</bdi>
      {count !== undefined && <span className="dim numbers"> {formatCount(count)}</span>}
    </>
  )
}

export function QueueChoice(props: ListProps) {
  const query = useQuery(queries.queues())
  return (
    <Loaded query={query} skeleton={<SkeletonRows rows={4} height={12} />}>
      {({ items }) => (
        <ChooseSome
          {...props}
          options={items.map(({ queue, count }) => ({ value: queue, label: queue, count }))}
        />
      )}
    </Loaded>
  )
}

export function GroupChoice(props: ListProps) {
  const query = useQuery(queries.topGroups(maxShown))
  return (
    <Loaded query={query} skeleton={<SkeletonRows rows={4} height={12} />}>
      {({ items }) => (
        <ChooseSome
          {...props}
          options={items.map(({ fingerprint, title, count }) => ({
            value: fingerprint,
            label: title === '' ? fingerprint : title,
            count,
          }))}
        />
      )}
    </Loaded>
  )
}

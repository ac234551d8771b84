import { Anchor, Button, Code, Group, Stack } from '@mantine/core'
import { libraryExample } from '../../format/examples.ts'
import { filterParts } from '../../format/filter.ts'
import { Empty } from '../../ui/empty.tsx'
import { FilterChip, FilterChips } from '../../ui/filter-chips.tsx'
import classes from './letters-page.module.css'
import { filterOf, rangeLabels, type LettersSearch } from './letters-search.ts'

/** No letter was ever stored. */
export function NoLetters() {
  return (
    <div className={classes.empty}>
      <Empty title="There are no letters">
        <Stack gap={8} align="center">
          <span>
            Work that fails is stored as a letter. This page shows the first one as soon as it is
            there.
          </span>
          <Anchor href="/docs/getting-started.html">Getting started</Anchor>
          <Code block ta="left" maw="100%" tabIndex={0}>
            {libraryExample}
          </Code>
        </Stack>
      </Empty>
    </div>
  )
}

/** The filter leaves nothing. */
export function NothingMatches({
  search,
  onClear,
}: {
  search: LettersSearch
  onClear: () => void
}) {
  const { last, ...rest } = search
  const { words } = rest
  const filter = filterOf(rest, 0)
  return (
    <div className={classes.empty}>
      <Empty title="No letter matches" action={<Button onClick={onClear}>Clear filters</Button>}>
        <Stack gap={8} align="center">
          <span>The list has only letters that match all of these:</span>
          <Group gap={4} justify="center">
            {last !== undefined && (
              <FilterChip label="time" text={rangeLabels[last]} name={rangeLabels[last]} />
            )}
            {words !== undefined && (
              <FilterChip label="words" text={words.slice(0, 100)} name={words.slice(0, 1000)} />
            )}
            {filterParts(filter).length > 0 && <FilterChips filter={filter} />}
          </Group>
        </Stack>
      </Empty>
    </div>
  )
}

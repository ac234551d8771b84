import { useState } from 'react'
import { Spotlight, spotlight, type SpotlightActionData } from '@mantine/spotlight'
import { useQuery } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { queries } from '../api/queries.ts'
import { formatAmount } from '../format/number.ts'
import { Icon } from '../ui/icon.tsx'
import { furtherPages, navigation } from './navigation.ts'
import { stringifySearch } from './search-params.ts'

export function openPalette(): void {
  spotlight.open()
}

const letterId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i
const maxItems = 8

type Item = Omit<SpotlightActionData, 'id'>

/** Opens every page, letter, group and queue by name. */
export function Palette() {
  const [query, setQuery] = useState('')
  const [isOpen, setOpen] = useState(false)
  const items = useItems(query.trim(), isOpen)
  return (
    <Spotlight
      // Numbers as ids: the first item stays selected when the items change, for Enter.
      actions={items.map((item, index) => ({ ...item, id: String(index) }))}
      query={query}
      onQueryChange={setQuery}
      onSpotlightOpen={() => setOpen(true)}
      onSpotlightClose={() => setOpen(false)}
      shortcut={['mod + K', '/']}
      filter={(_query, all) => all}
      highlightQuery={false}
      nothingFound="Nothing has this name. A search for letters looks at queues and errors."
      searchProps={{
        leftSection: <Icon name="search" />,
        placeholder: 'Page, queue, group, letter id, or words of an error',
        'aria-label': 'Search',
      }}
    />
  )
}

function useItems(typed: string, enabled: boolean): Item[] {
  const router = useRouter()
  const go = (href: string) => (): void => void router.navigate({ href })
  const { data: queues } = useQuery({ ...queries.queues(), enabled })
  const { data: groups } = useQuery({ ...queries.topGroups(50), enabled })
  const has = (text: string): boolean => text.toLowerCase().includes(typed.toLowerCase())
  const id = letterId.exec(typed)?.[0]
  const pages: Item[] = [...navigation, ...furtherPages]
    .filter(({ label }) => has(label))
    .map(({ path, label }) => ({
      label,
      description: 'Page',
      onClick: go(path),
    }))
  const found: Item[] = [
    ...(queues?.items ?? [])
      .filter(({ queue }) => has(queue))
      .map(({ queue, count }) => ({
        label: queue,
        description: `Queue, ${formatAmount(count, 'letter')}`,
        onClick: go(`/queues/${encodeURIComponent(queue)}`),
      })),
    ...(groups?.items ?? [])
      .filter(({ title }) => has(title))
      .map(({ fingerprint, title, count }) => ({
        label: title,
        description: `Group, ${formatAmount(count, 'letter')}`,
        onClick: go(`/groups/${encodeURIComponent(fingerprint)}`),
      })),
  ].slice(0, maxItems)
  if (typed === '') return pages
  return [
    ...(id === undefined ? [] : [{ label: `Open letter ${id}`, onClick: go(`/letters/${id}`) }]),
    ...pages,
    ...found,
    {
      label: `Search letters for “${typed}”`,
      description: 'Queues, error names, messages and codes',
      onClick: go(`/letters${stringifySearch({ text: typed })}`),
    },
  ]
}

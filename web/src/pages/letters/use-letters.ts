import { useCallback, useMemo, useState } from 'react'
import { useDebouncedValue } from '@mantine/hooks'
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import type { FeedEvent, FilterInput, SummaryView } from 'redrive/api'
import { queries, reloadLetters } from '../../api/queries.ts'
import { useNewLetters } from '../../app/feed.tsx'
import { useNow } from '../../app/preferences.tsx'
import { useCaller, useSeesAll } from '../../app/session.tsx'
import { matchesFilter } from '../../format/filter.ts'
import { stateNames } from '../../ui/state.tsx'
import { showProblem } from '../../ui/toast.ts'
import { filterOf, withOrder, type LettersSearch } from './letters-search.ts'

/** The letters of a search, read page by page. */
export function useLetters(search: LettersSearch) {
  const filter = useFilter(search)
  const { words, payload } = search
  const listInput = useMemo(() => withOrder(filter, search), [filter, search])
  const isFullText = words !== undefined
  const listed = useInfiniteQuery({ ...queries.letters(listInput), enabled: !isFullText })
  const found = useInfiniteQuery({
    ...queries.foundLetters({ ...filter, words: words ?? '', ...(payload ? { payload } : {}) }),
    enabled: isFullText,
  })
  const query = isFullText ? found : listed
  const { data } = query
  const letters = useMemo(() => data?.pages.flatMap(({ items }) => items), [data])
  const queryClient = useQueryClient()
  const { refetch } = found
  const reload = useCallback(async () => {
    try {
      await (isFullText ? refetch() : reloadLetters(queryClient, listInput))
    } catch (error) {
      showProblem(error)
    }
  }, [queryClient, listInput, isFullText, refetch])
  return { filter, query, letters, isFullText, reload }
}

/** The filter of the search. A range that ends now begins when it is chosen. */
function useFilter(search: LettersSearch): FilterInput {
  const now = useNow()
  const key = JSON.stringify(search)
  const [chosen, setChosen] = useState({ key, now })
  if (chosen.key !== key) setChosen({ key, now })
  return useMemo(
    () => filterOf(JSON.parse(chosen.key) as LettersSearch, chosen.now),
    [chosen.key, chosen.now],
  )
}

/** The number of letters that match, if the counts of the server tell it. */
export function useTotal(filter: FilterInput, isFullText: boolean): number | undefined {
  const seesAll = useSeesAll()
  const keys = Object.keys(filter)
  const isCounted = seesAll && !isFullText
  const byQueue = isCounted && keys.every((key) => key === 'queue' || key === 'state')
  const groups = [filter.group ?? []].flat()
  const byGroup =
    isCounted && groups.length === 1 && keys.every((key) => key === 'group' || key === 'state')
  const { data: queues } = useQuery({ ...queries.queues(), enabled: byQueue })
  const { data: group } = useQuery({ ...queries.group(groups[0] ?? ''), enabled: byGroup })
  const states = filter.state
    ? [filter.state].flat()
    : stateNames.filter((state) => state !== 'archived')
  const sum = (counts: Partial<Record<string, number>>): number =>
    states.reduce((total, state) => total + (counts[state] ?? 0), 0)
  if (byGroup) return group && sum(group.states)
  if (!byQueue || !queues || queues.cursor !== undefined) return undefined
  const wanted = filter.queue && [filter.queue].flat()
  return queues.items
    .filter(({ queue }) => wanted === undefined || wanted.includes(queue))
    .reduce((total, queue) => total + sum(queue.states), 0)
}

const scrollMs = 250

/** The letters on the screen as they are now. They keep their places, whatever has changed. */
export function useShownLetters(ids: readonly string[]): {
  current: ReadonlyMap<string, SummaryView>
  /** Letters that the store has no longer. */
  removed: ReadonlySet<string>
} {
  const key = ids.join(' ')
  const [settled] = useDebouncedValue(key, scrollMs)
  const asked = useMemo(() => (settled === '' ? [] : settled.split(' ')), [settled])
  const { data, isPlaceholderData } = useQuery(queries.shownLetters(asked))
  return useMemo(() => {
    const current = new Map(data?.items.map((letter) => [letter.id, letter]))
    const missing = data && !isPlaceholderData ? asked.filter((id) => !current.has(id)) : []
    return { current, removed: new Set(missing) }
  }, [data, asked, isPlaceholderData])
}

/** How many letters of the list are newer than its first row. */
export function useNewCount(
  filter: FilterInput,
  { enabled, first }: { enabled: boolean; first: SummaryView | undefined },
): { count: number; isMore: boolean } {
  const [state, setState] = useState<NewLetters>(noNewLetters)
  const { id = '', deadLetteredAt = '' } = first ?? {}
  const isSame = state.filter === filter && state.firstId === id
  const listener = useCallback(
    ({ items, more }: Extract<FeedEvent, { type: 'letters' }>) => {
      if (!enabled) return
      const ids = items
        // The feed may repeat letters that the list has.
        .filter((one) => one.deadLetteredAt > deadLetteredAt && matchesFilter(one, filter))
        .map((one) => one.id)
      setState((before) => {
        const isSame = before.filter === filter && before.firstId === id
        const known = isSame ? before : noNewLetters
        return {
          filter,
          firstId: id,
          ids: new Set([...known.ids, ...ids]),
          isMore: known.isMore || more !== undefined,
        }
      })
    },
    [enabled, filter, id, deadLetteredAt],
  )
  useNewLetters(listener)
  return isSame ? { count: state.ids.size, isMore: state.isMore } : { count: 0, isMore: false }
}

/** New letters of a list, which its filter and its first row tell from others. */
interface NewLetters {
  filter: FilterInput | undefined
  firstId: string
  ids: ReadonlySet<string>
  isMore: boolean
}

const noNewLetters: NewLetters = { filter: undefined, firstId: '', ids: new Set(), isMore: false }

/** Whether the reader may look into letters with full-text search. */
export function useHasSearch(): boolean {
  const caller = useCaller()
  return caller?.fullTextSearch === true && caller.permissions.includes('payload:read')
}

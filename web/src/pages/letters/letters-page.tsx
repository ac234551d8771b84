import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { Button, SegmentedControl, Title } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { SummaryView } from 'redrive/api'
import { api } from '../../api/client.ts'
import { useCan } from '../../app/session.tsx'
import { useShortcuts, type Shortcut } from '../../app/shortcuts.tsx'
import { formatAmount, formatCount } from '../../format/number.ts'
import { Problem } from '../../ui/problem.tsx'
import { showProblem } from '../../ui/toast.ts'
import { BulkDrawer } from '../bulk/bulk-drawer.tsx'
import type { BulkRequest, FilterAction } from '../bulk/bulk-request.ts'
import { ColumnMenu, useColumns } from './column-menu.tsx'
import { columnsOf } from './columns.tsx'
import { FilterBar } from './filter-bar.tsx'
import { LetterList, LetterListSkeleton } from './letter-list.tsx'
import { NoLetters, NothingMatches } from './letters-empty.tsx'
import classes from './letters-page.module.css'
import { isFiltered, withoutFilter, type LettersSearch } from './letters-search.ts'
import { SavedViews } from './saved-views.tsx'
import { SelectionBar } from './selection-bar.tsx'
import { useHasSearch, useLetters, useNewCount, useTotal } from './use-letters.ts'
import { useSelection } from './use-selection.ts'

const route = getRouteApi('/signed-in/letters')
const noLetters: readonly SummaryView[] = []

/** The list of letters with its filter, its selection and what can be done with it. */
export function LettersPage() {
  const search = route.useSearch()
  const navigate = useNavigate()
  const onSearch = useCallback(
    (next: LettersSearch) => void navigate({ to: '/letters', search: next }),
    [navigate],
  )
  const isCard = useMediaQuery('(max-width: 48em)', undefined, { getInitialValueInEffect: false })
  const list = useLetters(search)
  const letters = list.letters ?? noLetters
  const { keys, setKeys } = useColumns(search, onSearch)
  useEffect(() => {
    document.title = 'Letters · Redrive'
  }, [])
  return (
    <div className={classes.page}>
      <div className={classes.title}>
        <Title order={1}>Letters</Title>
        <div className={classes.status}>
          <SavedViews search={search} filter={list.filter} columns={keys} onSearch={onSearch} />
          {!isCard && <ColumnMenu keys={keys} onChange={setKeys} />}
          <SegmentedControl
            size="xs"
            aria-label="Order"
            value={search.order ?? 'newest'}
            disabled={list.isFullText}
            onChange={(order) => onSearch({ ...search, order })}
            data={[
              { value: 'newest', label: 'Newest' },
              { value: 'oldest', label: 'Oldest' },
            ]}
          />
        </div>
      </div>
      <FilterBar
        search={search}
        onSearch={onSearch}
        hasFullText={useHasSearch()}
        letters={letters}
      />
      <ListPart
        // Another filter is another list: it has its own selection and current row.
        key={JSON.stringify([list.filter, search.words, search.order])}
        {...{ search, onSearch, list, keys, isCard }}
      />
    </div>
  )
}

interface ListPartProps {
  search: LettersSearch
  onSearch: (search: LettersSearch) => void
  list: ReturnType<typeof useLetters>
  keys: readonly string[]
  isCard: boolean
}

/** The rows, the line above them, and the actions on the selection. */
function ListPart({ search, onSearch, list, keys, isCard }: ListPartProps) {
  const { filter, isFullText } = list
  const letters = list.letters ?? noLetters
  const navigate = useNavigate()
  const total = useTotal(filter, isFullText)
  const selection = useSelection(letters)
  const cursor = useCursor(letters.length)
  const { current } = cursor
  const [request, setRequest] = useState<BulkRequest>()
  const scroller = useRef<HTMLDivElement>(null)
  const columns = useMemo(() => columnsOf(keys), [keys])
  const isSome = selection.isAll || selection.ids.size > 0
  const act = (action: FilterAction): void =>
    setRequest({ action, filter: selection.isAll ? filter : { ids: [...selection.ids] } })
  const open = (index: number): void => {
    const letter = letters[index]
    if (letter) void navigate({ to: '/letters/$id', params: { id: letter.id } })
  }
  const retryOne = useRetry()
  const retry = (): void => {
    const [only] = selection.ids
    const id = isSome ? only : letters[cursor.latest()]?.id
    if (selection.isAll || selection.ids.size > 1) act('retry')
    else if (id !== undefined) retryOne(id)
  }
  useListShortcuts({
    move: (by) => {
      cursor.move(cursor.latest() + by)
      scroller.current?.focus({ preventScroll: true })
    },
    open: () => open(cursor.latest()),
    toggle: () => cursor.latest() >= 0 && selection.toggle(cursor.latest()),
    retry,
    clear: selection.clear,
  })
  const next = useNext(list)
  return (
    <>
      <div className={classes.status}>
        {isSome ? (
          <SelectionBar
            selection={selection}
            total={total}
            canSelectAll={!isFullText}
            onAct={act}
          />
        ) : (
          <Amount list={list} total={total} />
        )}
        <span className={classes.spacer} />
        <NewLetters
          search={search}
          list={list}
          total={total}
          onShown={() => scroller.current?.scrollTo(0, 0)}
        />
      </div>
      {letters.length > 0 || next.has ? (
        <LetterList
          // Cards and rows differ in height.
          key={String(isCard)}
          {...{ letters, columns, selection, current, isCard, next, scroller }}
          onCurrent={cursor.move}
          onOpen={open}
        />
      ) : (
        <NoRows search={search} onSearch={onSearch} list={list} />
      )}
      <BulkDrawer request={request} onClose={() => setRequest(undefined)} />
    </>
  )
}

/** What the list shows in the place of rows. */
function NoRows({ search, onSearch, list }: Pick<ListPartProps, 'search' | 'onSearch' | 'list'>) {
  const { query, letters } = list
  if (letters === undefined)
    return query.error ? (
      <Problem error={query.error} onRetry={() => void query.refetch()} />
    ) : (
      <LetterListSkeleton />
    )
  return isFiltered(search) ? (
    <NothingMatches search={search} onClear={() => onSearch(withoutFilter(search))} />
  ) : (
    <NoLetters />
  )
}

/** The current row. Keys can come faster than the page is drawn: `latest` is never behind. */
function useCursor(count: number) {
  const [current, setCurrent] = useState(-1)
  const position = useRef(-1)
  const move = (index: number): void => {
    if (count === 0) return
    position.current = Math.min(Math.max(index, 0), count - 1)
    setCurrent(position.current)
  }
  return { current, move, latest: () => position.current }
}

function useNext({ query }: ListPartProps['list']) {
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query
  return useMemo(
    () => ({ has: hasNextPage, isReading: isFetchingNextPage, read: () => void fetchNextPage() }),
    [hasNextPage, isFetchingNextPage, fetchNextPage],
  )
}

/** How many letters there are, as far as that is known. */
function Amount({ list, total }: { list: ListPartProps['list']; total: number | undefined }) {
  const { letters, query } = list
  if (letters === undefined)
    return query.error ? null : <span className="dim">Reading letters…</span>
  const isWhole = !query.hasNextPage
  const count = total ?? (isWhole ? letters.length : undefined)
  return (
    <span className="dim numbers" role="status">
      {count === undefined
        ? `${formatCount(letters.length)} loaded, more follow`
        : formatAmount(count, 'letter')}
    </span>
  )
}

/** Announces new letters. Rows move only when the reader asks for it. */
function NewLetters({
  search,
  list: { filter, letters, isFullText, reload },
  total = 0,
  onShown,
}: Pick<ListPartProps, 'search' | 'list'> & {
  total: number | undefined
  onShown: () => void
}) {
  const enabled = letters !== undefined && !isFullText && search.order !== 'oldest'
  const { count, isMore } = useNewCount(filter, { enabled, first: letters?.[0] })
  const isEmpty = letters?.length === 0
  useEffect(() => {
    // Nobody reads an empty list: it shows its first letters at once.
    if (isEmpty && (count > 0 || total > 0)) void reload()
  }, [isEmpty, count, total, reload])
  if (count === 0 || isEmpty) return null
  return (
    <Button
      variant="light"
      radius="xl"
      onClick={() => void reload().then(onShown)}
      title="Show them at the top of the list"
    >
      {formatCount(count)}
      {isMore && '+'} new
    </Button>
  )
}

/** Retries one letter at once. The list shows its new state. */
function useRetry(): (id: string) => void {
  const queryClient = useQueryClient()
  const can = useCan()
  const { mutate } = useMutation({
    mutationFn: (id: string) => api.retryLetter({ id }),
    onError: showProblem,
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['letters', 'one'] }),
  })
  const isAllowed = can('letter:retry')
  return useCallback((id) => isAllowed && mutate(id), [isAllowed, mutate])
}

interface ListKeys {
  move: (by: number) => void
  open: () => void
  toggle: () => void
  retry: () => void
  clear: () => void
}

function useListShortcuts(keys: ListKeys): void {
  const latest = useRef(keys)
  useEffect(() => {
    latest.current = keys
  })
  const shortcuts = useMemo(() => {
    const shortcut = (keys: string, label: string, run: (list: ListKeys) => void): Shortcut => ({
      keys,
      label,
      run: () => run(latest.current),
    })
    return [
      shortcut('j', 'Next letter', ({ move }) => move(1)),
      shortcut('k', 'Previous letter', ({ move }) => move(-1)),
      shortcut('o', 'Open the letter (or Enter)', ({ open }) => open()),
      shortcut('x', 'Select the letter (or Space)', ({ toggle }) => toggle()),
      shortcut('r', 'Retry the selected letters', ({ retry }) => retry()),
      shortcut('escape', 'Clear the selection', ({ clear }) => clear()),
    ]
  }, [])
  useShortcuts(shortcuts)
}

import { useEffect, useMemo, type KeyboardEvent, type RefObject } from 'react'
import { Checkbox, Skeleton } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import type { SummaryView } from 'redrive/api'
import { layoutOf, type Column } from './columns.tsx'
import classes from './letter-list.module.css'
import { LetterRow, rowId } from './letter-row.tsx'
import { useShownLetters } from './use-letters.ts'
import type { Selection } from './use-selection.ts'

const rowHeight = 32
const cardHeight = 56
/** Rows outside the window that are drawn already. */
const overscan = 10
/** The next page is read when fewer rows than this are left below the window. */
const aheadRows = 400

export interface LetterListProps {
  letters: readonly SummaryView[]
  columns: readonly Column[]
  selection: Selection
  current: number
  onCurrent: (index: number) => void
  onOpen: (index: number) => void
  isCard: boolean
  next: { has: boolean; isReading: boolean; read: () => void }
  /** The element that scrolls and has the focus. */
  scroller: RefObject<HTMLDivElement | null>
}

/** The list of letters. Only rows near the window exist in the page. */
export function LetterList(props: LetterListProps) {
  const { letters, columns, selection, current, isCard, next, scroller } = props
  const height = isCard ? cardHeight : rowHeight
  // oxlint-disable-next-line react/incompatible-library
  const virtualizer = useVirtualizer({
    count: letters.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    // Rows are drawn at once, and not only after the list has been measured.
    initialRect: { width: 0, height: window.innerHeight },
    overscan,
    scrollPaddingStart: rowHeight,
  })
  const items = virtualizer.getVirtualItems()
  useNextPage(items.at(-1)?.index ?? 0, letters.length, next)
  useEffect(() => {
    if (current >= 0) virtualizer.scrollToIndex(current)
  }, [virtualizer, current])
  const { current: shown, removed } = useShownLetters(
    items.map(({ index }) => letters[index]!.id).slice(0, 200),
  )
  const { tracks, minWidth } = useMemo(() => layoutOf(columns), [columns])
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label="Letters"
      aria-rowcount={next.has ? -1 : letters.length + 1}
      aria-multiselectable="true"
      aria-activedescendant={current >= 0 ? rowId(current) : undefined}
      tabIndex={0}
      className={classes.scroller}
      data-scroll-restoration-id="letters"
      onKeyDown={(event) => moveByKey(event, props)}
    >
      {!isCard && (
        <ListHead columns={columns} selection={selection} tracks={tracks} minWidth={minWidth} />
      )}
      <div
        role="rowgroup"
        className={classes.body}
        style={{ height: virtualizer.getTotalSize(), minWidth: isCard ? 0 : minWidth }}
      >
        {items.map(({ index, start }) => {
          const letter = letters[index]!
          return (
            <LetterRow
              key={letter.id}
              letter={shown.get(letter.id) ?? letter}
              index={index}
              top={start}
              columns={columns}
              tracks={tracks}
              isSelected={selection.has(letter.id)}
              isCurrent={index === current}
              isRemoved={removed.has(letter.id)}
              isCard={isCard}
              onToggle={selection.toggle}
            />
          )
        })}
      </div>
      {next.has && (
        <div className={classes.more} role="presentation">
          Reading more letters…
        </div>
      )}
    </div>
  )
}

/** Reads the next page before the reader gets to the end, but not before the rows are drawn. */
function useNextPage(
  last: number,
  count: number,
  { has, isReading, read }: LetterListProps['next'],
) {
  const isNear = has && !isReading && last >= count - aheadRows
  useEffect(() => {
    if (!isNear) return undefined
    const frame = requestAnimationFrame(() => setTimeout(read))
    return () => cancelAnimationFrame(frame)
  }, [isNear, read])
}

function moveByKey(
  event: KeyboardEvent<HTMLDivElement>,
  { letters, current, onCurrent, onOpen, selection }: LetterListProps,
): void {
  if (event.target !== event.currentTarget) return
  const last = letters.length - 1
  const to: Record<string, number> = {
    ArrowDown: Math.min(current + 1, last),
    ArrowUp: Math.max(current - 1, 0),
    Home: 0,
    End: last,
  }
  const target = to[event.key]
  if (target !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault()
    if (event.shiftKey && current >= 0) selection.toggle(target, true)
    onCurrent(target)
  } else if (event.key === 'Enter' && current >= 0) {
    event.preventDefault()
    onOpen(current)
  } else if (event.key === ' ' && current >= 0) {
    event.preventDefault()
    selection.toggle(current)
  }
}

function ListHead({
  columns,
  selection,
  tracks,
  minWidth,
}: {
  columns: readonly Column[]
  selection: Selection
  tracks: string
  minWidth: number
}) {
  const isSome = selection.isAll || selection.ids.size > 0
  return (
    <div
      role="row"
      className={classes.head}
      aria-rowindex={1}
      style={{ gridTemplateColumns: tracks, minWidth }}
    >
      <div role="columnheader" className={classes.select}>
        <Checkbox
          size="xs"
          checked={selection.isAll}
          indeterminate={!selection.isAll && isSome}
          aria-label={isSome ? 'Clear the selection' : 'Select the loaded letters'}
          onChange={isSome ? selection.clear : selection.selectLoaded}
        />
      </div>
      {columns.map(({ key, label }) => (
        <div key={key} role="columnheader" className="line">
          <bdi>{label}</bdi>
        </div>
      ))}
    </div>
  )
}

/** The list before its first letters are there, with the same rows. */
export function LetterListSkeleton() {
  return (
    <div className={classes.scroller} aria-busy="true" aria-label="Loading letters">
      {Array.from({ length: 24 }, (_, row) => (
        <div key={row} className={classes.skeleton}>
          <Skeleton height={12} width={`${88 - ((row * 17) % 40)}%`} />
        </div>
      ))}
    </div>
  )
}

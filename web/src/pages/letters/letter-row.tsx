import { memo, type MouseEvent } from 'react'
import { Link } from '@tanstack/react-router'
import type { SummaryView } from 'redrive/api'
import { formatCount } from '../../format/number.ts'
import { shortenId } from '../../format/text.ts'
import { StateBadge } from '../../ui/state.tsx'
import { Age } from '../../ui/time.tsx'
import { failureText, type Column } from './columns.tsx'
import classes from './letter-list.module.css'

export interface RowProps {
  letter: SummaryView
  index: number
  /** Distance from the top of the list, in pixels. */
  top: number
  columns: readonly Column[]
  tracks: string
  isSelected: boolean
  isCurrent: boolean
  isRemoved: boolean
  isCard: boolean
  onToggle: (index: number, extend: boolean) => void
}

export function rowId(index: number): string {
  return `letter-row-${index}`
}

/** A letter of the list: a line of cells, or two lines on a phone. */
export const LetterRow = memo(function LetterRow(props: RowProps) {
  const { letter, index, top, tracks, isSelected, isCurrent, isRemoved, isCard, onToggle } = props
  const onClick = (event: MouseEvent): void => {
    if (!event.shiftKey) return
    event.preventDefault()
    onToggle(index, true)
  }
  return (
    // The keys of the list act on its current row.
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events
    <div
      role="row"
      tabIndex={-1}
      id={rowId(index)}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      data-current={isCurrent || undefined}
      data-removed={isRemoved || undefined}
      className={isCard ? `${classes.row} ${classes.card}` : classes.row}
      style={{ transform: `translateY(${top}px)`, gridTemplateColumns: tracks }}
      onClick={onClick}
    >
      <div role="gridcell" className={classes.select}>
        <input
          type="checkbox"
          checked={isSelected}
          tabIndex={-1}
          aria-label={`Select the letter ${shortenId(letter.id)}`}
          onChange={({ nativeEvent }) =>
            onToggle(index, nativeEvent instanceof PointerEvent && nativeEvent.shiftKey)
          }
        />
      </div>
      {isCard ? <CardCell letter={letter} /> : <Cells {...props} />}
    </div>
  )
})

function Cells({ letter, columns }: RowProps) {
  return columns.map((column) => (
    <div key={column.key} role="gridcell" className="line">
      {column.key === 'failure' ? (
        <OpenLink letter={letter}>{column.render(letter)}</OpenLink>
      ) : (
        column.render(letter)
      )}
    </div>
  ))
}

function CardCell({ letter }: { letter: SummaryView }) {
  return (
    <div role="gridcell">
      <div className={classes.first}>
        <div className="line">
          <OpenLink letter={letter}>
            <bdi>{failureText(letter)}</bdi>
          </OpenLink>
        </div>
      </div>
      <div className={classes.second}>
        <StateBadge state={letter.state} />
        <bdi className="line">{letter.queue.slice(0, 300)}</bdi>
        <Age since={letter.deadLetteredAt} />
        <span className="numbers">
          {formatCount(letter.retries)} of {formatCount(letter.maxRetries)} retries
        </span>
      </div>
    </div>
  )
}

function OpenLink({ letter, children }: { letter: SummaryView; children: React.ReactNode }) {
  return (
    <Link
      to="/letters/$id"
      params={{ id: letter.id }}
      className={classes.open}
      tabIndex={-1}
      preload={false}
      title={failureText(letter)}
    >
      {children}
    </Link>
  )
}

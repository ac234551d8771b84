import type { ReactNode } from 'react'
import { Table } from '@mantine/core'
import classes from './data-table.module.css'

export interface Column<T> {
  /** The title, which is also the key. Empty titles need a `label` for screen readers. */
  title: string
  label?: string
  align?: 'left' | 'right'
  width?: number | string
  cell: (row: T) => ReactNode
}

/** The least width of columns without one, where the words of most cells stay whole. */
const firstWidth = 150
const otherWidth = 100

/** A narrower screen scrolls the table. */
function minWidthOf<T>(columns: readonly Column<T>[]): number {
  return columns.reduce((sum, { width }, index) => {
    if (typeof width === 'number') return sum + width
    return sum + (index === 0 ? firstWidth : otherWidth)
  }, 0)
}

/** A table of at most some hundred rows. Longer lists are virtual. */
export function DataTable<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  /** What the table lists, for screen readers. */
  label: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
}) {
  return (
    <Table.ScrollContainer minWidth={minWidthOf(columns)} type="native" tabIndex={0}>
      <Table className={classes.table} aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ title, label: name, align = 'left', width }) => (
              <Table.Th
                key={title || name}
                ta={align}
                {...(width === undefined ? {} : { w: width })}
              >
                {title === '' ? <span className="sr-only">{name}</span> : title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={keyOf(row)}>
              {columns.map(({ title, label: name, align = 'left', cell }) => (
                <Table.Td key={title || name} ta={align}>
                  {cell(row)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

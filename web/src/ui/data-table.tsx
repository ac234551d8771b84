import type { ReactNode } from 'react'
import { Box, Table } from '@mantine/core'
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

/**
 * A table of at most some hundred rows. Longer lists are virtual. On a phone, each row is a card
 * with the titles of the columns beside its values. The roles are explicit because browsers drop
 * those of tables that are not displayed as tables.
 */
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
    <Box
      className={classes.scroll}
      tabIndex={0}
      __vars={{ '--table-min-width': `${minWidthOf(columns)}px` }}
    >
      <Table className={classes.table} role="table" aria-label={label}>
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {columns.map(({ title, label: name, align = 'left', width }) => (
              <Table.Th
                key={title || name}
                role="columnheader"
                ta={align}
                {...(width === undefined ? {} : { w: width })}
              >
                {title === '' ? <span className="sr-only">{name}</span> : title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody role="rowgroup">
          {rows.map((row) => (
            <Table.Tr key={keyOf(row)} role="row">
              {columns.map(({ title, label: name, align = 'left', cell }) => (
                <Table.Td key={title || name} role="cell" data-title={title} data-align={align}>
                  {cell(row)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Box>
  )
}

import { styleText } from 'node:util'
import { escapeHidden } from '../letter/payload-view.ts'
import { terminal } from './terminal.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Colours on a terminal, otherwise plain text. */
export function paint(style: Style | undefined, text: string): string {
  if (style === undefined || !hasColours(terminal.stdout, terminal.env)) return text
  return styleText(style, text, { validateStream: false })
}

/**
 * Whether text to this stream may have colours: on each terminal that is not dumb, except with
 * NO_COLOR. FORCE_COLOR decides first. Node itself would also give none where CI is set or TERM has
 * a name that it does not know, although the terminal shows them.
 */
export function hasColours(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  const { FORCE_COLOR: force, NO_COLOR: none, TERM: kind } = env
  if (force !== undefined) return force !== '0' && force !== 'false'
  return stream.isTTY === true && !none && kind !== 'dumb'
}

/** Maximum width of a line: that of the terminal, otherwise COLUMNS, otherwise 80. */
export function lineWidth(): number {
  const columns = Number.parseInt(terminal.env['COLUMNS'] ?? '', 10)
  return Math.max(20, terminal.stdout.columns || (columns > 0 ? columns : 80))
}

/** Colour and cursor sequences of terminals, which error messages often contain. */
// oxlint-disable-next-line no-control-regex -- the pattern searches for control characters
const sequences = /[\u001b\u009b]\[?[0-?]*[ -/]*[@-~]/g

/**
 * Untrusted text of several lines: terminal sequences are removed, other control characters are
 * escaped.
 */
export function escapeBlock(text: string): string {
  return escapeHidden(text.replace(sequences, '').replaceAll('\r\n', '\n').replaceAll('\t', '  '))
}

/** Untrusted text as one line. */
export function escapeLine(text: string): string {
  return escapeHidden(text.replace(sequences, '').replaceAll(/\s+/g, ' ')).trim()
}

/** JSON with escaped control characters. It parses back to the same value. */
export function toJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replaceAll(
    /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (hidden) =>
      Array.from(
        { length: hidden.length },
        (_, unit) => `\\u${hidden.charCodeAt(unit).toString(16).padStart(4, '0')}`,
      ).join(''),
  )
}

/** Prints a document: indented, or on one line with --jsonl. */
export function printDocument({ jsonl }: { jsonl?: boolean }, value: unknown): void {
  terminal.stdout.write(`${toJson(value, jsonl ? undefined : 2)}\n`)
}

/** Prints a value as one line of JSON, or the text. */
export function printEither({ json }: { json?: boolean }, value: unknown, text: string): void {
  terminal.stdout.write(json ? `${toJson(value)}\n` : text)
}

/** Prints rows as lines of JSON or as a table. `none` says that there are no rows. */
export function printRows<Row>(
  { json }: { json?: boolean },
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  none: string,
): void {
  if (json) for (const row of rows) terminal.stdout.write(`${toJson(row)}\n`)
  else if (rows.length === 0) terminal.stdout.write(`${none}\n`)
  else terminal.stdout.write(`${formatTable(columns, rows, lineWidth()).join('\n')}\n`)
}

const graphemes = new Intl.Segmenter()
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|^\p{Emoji_Presentation}/u
const ascii = /^[ -~]*$/

/** The width of a string on a terminal: one column per character, two for East Asian characters. */
export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1
  return width
}

/** Cuts a string to a width, with an ellipsis at the end. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let result = ''
  let used = 0
  for (const { segment } of graphemes.segment(text)) {
    used += wide.test(segment) ? 2 : 1
    if (used > width - 1) break
    result += segment
  }
  return width > 0 ? `${result}…` : ''
}

export interface Column<Row> {
  title: string
  cell: (row: Row) => string
  style?: (row: Row) => Style | undefined
  /** Minimum width, if the column may be cut. */
  minWidth?: number
  alignRight?: boolean
  /** True: the column is left out if the table is too wide. */
  optional?: boolean
}

/** Lines of a table that is no wider than `width`. Cells must be plain lines already. */
export function formatTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
): string[] {
  const cells = rows.map((row) => columns.map((column) => column.cell(row)))
  const natural = columns.map((column, index) =>
    cells.reduce((most, row) => Math.max(most, widthOf(row[index]!)), column.title.length),
  )
  const gap = width < 100 ? 1 : 2
  const widths = fitWidths(columns, natural, width, gap)
  const lineOf = (parts: string[]): string =>
    parts
      .filter((_, index) => widths[index]! > 0)
      .join(' '.repeat(gap))
      .trimEnd()
  const head = lineOf(columns.map((column, index) => padCell(column, column.title, widths[index]!)))
  return [
    paint('dim', truncate(head, width)),
    ...rows.map((row, at) =>
      lineOf(
        columns.map((column, index) =>
          paint(column.style?.(row), padCell(column, cells[at]![index]!, widths[index]!)),
        ),
      ),
    ),
  ]
}

function padCell<Row>(column: Column<Row>, text: string, width: number): string {
  const fits = truncate(text, width)
  const space = ' '.repeat(Math.max(0, width - widthOf(fits)))
  return column.alignRight ? space + fits : fits + space
}

/** Shrinks the last columns first, then removes optional ones. A column of width 0 is left out. */
function fitWidths<Row>(
  columns: readonly Column<Row>[],
  natural: readonly number[],
  width: number,
  gap: number,
): number[] {
  const widths = [...natural]
  for (;;) {
    const visible = widths.filter((one) => one > 0)
    let over = visible.reduce((sum, one) => sum + one, gap * (visible.length - 1)) - width
    for (const [index, column] of [...columns.entries()].toReversed()) {
      if (over <= 0) return widths
      if (column.minWidth === undefined || widths[index] === 0) continue
      const shrunk = Math.min(over, Math.max(0, widths[index]! - column.minWidth))
      widths[index]! -= shrunk
      over -= shrunk
    }
    if (over <= 0) return widths
    const droppable = columns.findIndex((column, index) => column.optional && widths[index]! > 0)
    if (droppable === -1) return cutWidths(columns, widths, over)
    for (const [index, column] of columns.entries())
      if (column.minWidth !== undefined && widths[index]! > 0) widths[index] = natural[index]!
    widths[droppable] = 0
  }
}

/** The least width of a column on a terminal that is too narrow for all minimum widths. */
const leastWidth = 4

function cutWidths<Row>(
  columns: readonly Column<Row>[],
  widths: readonly number[],
  over: number,
): number[] {
  const cut = [...widths]
  for (const index of [...columns.keys()].toReversed()) {
    const spare = columns[index]!.minWidth === undefined ? 0 : cut[index]! - leastWidth
    const shrunk = Math.min(over, Math.max(0, spare))
    cut[index]! -= shrunk
    over -= shrunk
  }
  return cut
}

const units: [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
]

/** A duration in its largest unit: "4 min", "2 h". */
export function formatDuration(ms: number): string {
  for (const [size, name] of units) if (ms >= size) return `${Math.floor(ms / size)} ${name}`
  return '0 s'
}

/** A timestamp to the second, in UTC: "2026-01-31 09:30:00". */
export function formatTimestamp(at: string): string {
  return at.slice(0, 19).replace('T', ' ')
}

/** A timestamp relative to now: "in 4 min", "2 h ago", "now". */
export function formatRelativeTime(atMs: number, nowMs: number): string {
  const distance = atMs - nowMs
  if (Math.abs(distance) < 1000) return 'now'
  return distance > 0 ? `in ${formatDuration(distance)}` : `${formatDuration(-distance)} ago`
}

export function formatCount(count: number, what: string): string {
  return `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`
}

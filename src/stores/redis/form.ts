import type { LoadedLetter } from '../rows/form.ts'
import { isEdited } from '../rows/rest.ts'
import { seal, valuesOf, type Row } from '../rows/row.ts'
import { col, numberColumns, rowWidth, textColumns } from './columns.ts'
import type { Cell } from './packing.ts'
import { checksumLength, checksumOf } from './checksum.ts'

/** The fields of a letter in a reply: r x o, and for whole letters b e and the history entries. */
export type Fields = (Buffer | null | Buffer[])[]

/** A placeholder for an unreadable row, with what its index tells about it. */
export interface Hint {
  queue?: string
  state?: number
}

/** A row, as far as it could be read, and its faults. */
export interface ReadRow {
  row: Row
  queue: string
  trouble: string | null
  readable: boolean
}

export function readRow(id: string, r: Buffer | null, x: Buffer | null, hint: Hint = {}): ReadRow {
  const text = r?.toString() ?? ''
  const cells = cellsIn(id, text.slice(checksumLength))
  const restRaw = x?.toString() ?? ''
  const rest = restRaw.slice(checksumLength)
  const faults: string[] = []
  if (!cells) faults.push('the row cannot be read')
  else if (!text.startsWith(checksumOf(text.slice(checksumLength))))
    faults.push('the row does not match its checksum')
  if (x !== null && !restRaw.startsWith(checksumOf(rest)))
    faults.push('the rest of the row does not match its checksum')
  const row = cells ? rowIn(cells, x === null ? '{}' : rest) : noRow(id, hint)
  row.crc = seal(row)
  return {
    row,
    queue: cells ? (cells[col.queue - 1] as string) : (hint.queue ?? 'unreadable'),
    trouble: faults.length > 0 ? faults.join('; ') : null,
    readable: cells !== undefined,
  }
}

function cellsIn(id: string, text: string): Cell[] | undefined {
  try {
    const cells: unknown = JSON.parse(text)
    return isRow(cells) && cells[0] === id ? cells : undefined
  } catch {
    return undefined
  }
}

function isRow(cells: unknown): cells is Cell[] {
  return (
    Array.isArray(cells) &&
    cells.length === rowWidth &&
    numberColumns.every((n) => typeof cells[n - 1] === 'number') &&
    textColumns.every((n) => typeof cells[n - 1] === 'string')
  )
}

function rowIn(cells: Cell[], rest: string): Row {
  const text = (n: number): string | null => (cells[n - 1] === false ? null : String(cells[n - 1]))
  const number = (n: number): number => cells[n - 1] as number
  return {
    id: cells[col.id - 1] as string,
    state: number(col.state),
    priority: number(col.priority),
    category: number(col.category),
    policy: number(col.policy),
    reason: text(col.reason),
    fingerprint: cells[col.fingerprint - 1] as string,
    version: number(col.version),
    epoch: number(col.epoch),
    retries: number(col.retries),
    backoffMs: Number(cells[col.backoffMs - 1]) || 0,
    retryAt: text(col.retryAt),
    settledAt: text(col.settledAt),
    expiresAt: text(col.expiresAt),
    deadLetteredAt: cells[col.deadLetteredAt - 1] as string,
    updatedAt: cells[col.updatedAt - 1] as string,
    worker: text(col.worker),
    leasedUntil: text(col.leasedUntil),
    lane: text(col.lane),
    tenant: text(col.tenant),
    dependent: number(col.dependent),
    tagged: cells[col.tags - 1] === false ? 0 : 1,
    entries: number(col.entries),
    omitted: number(col.omitted),
    rest,
    crc: 0,
  }
}

function noRow(id: string, { state = 4 }: Hint): Row {
  const at = '1970-01-01T00:00:00.000Z'
  const nothing = { reason: null, retryAt: null, settledAt: null, expiresAt: null, worker: null }
  return {
    ...nothing,
    id,
    state,
    priority: 2,
    category: 9,
    policy: 0,
    fingerprint: 'unreadable',
    version: 0,
    epoch: 0,
    retries: 0,
    backoffMs: 0,
    deadLetteredAt: at,
    updatedAt: at,
    leasedUntil: null,
    lane: null,
    tenant: null,
    dependent: 0,
    tagged: 0,
    entries: 0,
    omitted: 0,
    rest: '{}',
    crc: 0,
  }
}

/** Converts a letter to the form that `unpack` takes. */
export function keptOf(id: string, fields: Fields, hint?: Hint): LoadedLetter {
  const [r, x, o, b, e, h] = fields as [
    Buffer | null,
    Buffer | null,
    Buffer | null,
    (Buffer | null)?,
    (Buffer | null)?,
    Buffer[]?,
  ]
  const { row, queue, trouble } = readRow(id, r, x, hint)
  const faults = trouble === null ? [] : [trouble]
  if (x === null) faults.push('the rest of the row is missing')
  if (o === null) faults.push('its origin is missing')
  const origin = o?.toString() ?? null
  const [bytes, bytesCrc] = bytesIn((isEdited(row) ? e : b) ?? null)
  return [
    valuesOf(row),
    queue,
    origin === null ? null : origin.slice(checksumLength),
    origin === null ? 0 : Number.parseInt(origin.slice(0, checksumLength), 16),
    bytes,
    bytesCrc,
    h?.map((entry) => entry.toString()) ?? [],
    faults.length > 0 ? faults.join('; ') : null,
  ]
}

/** The payload as captured, in the form that `unpackOriginal` takes. */
export function originalOf(id: string, fields: Fields): LoadedLetter {
  const kept = keptOf(id, fields)
  const [bytes, bytesCrc] = bytesIn(fields[3] as Buffer | null)
  return [kept[0], kept[1], kept[2], kept[3], bytes, bytesCrc, [], kept[7]]
}

function bytesIn(field: Buffer | null): [Uint8Array | null, number] {
  if (field === null || field.length < 4) return [null, 0]
  return [new Uint8Array(field.subarray(4)), field.readUInt32LE()]
}

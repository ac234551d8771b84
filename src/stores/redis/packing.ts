import { crc32 } from 'node:zlib'
import type { DeadLetter } from '../../letter/letter.ts'
import type { StoredLetter } from '../../store.ts'
import { keyHash } from '../rows/key-hash.ts'
import type { PackedLetter } from '../rows/form.ts'
import { factsOf, pack, type Rest } from '../rows/pack.ts'
import { rowOf, type Row } from '../rows/row.ts'
import type { Argument } from '../../backends/redis/connection.ts'
import { col } from './columns.ts'
import { prefixChecksum, checksumLength } from './checksum.ts'

/** A value in a row. */
export type Cell = string | number | false | string[]

/** The fields of a rest, one per line, so that scripts can set one without reading the others. */
export function restText(rest: object): string {
  const lines = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `"${name}":${JSON.stringify(value)}\n`)
  return `{${lines.join(',')}}`
}

/** A letter in the form that scripts take: row, rest, origin, bytes. */
export interface Packed {
  row: string
  rest: string
  origin: string
  bytes: Buffer
  extras: PackedLetter[6]
  newer: { rest: Rest; origin: string }
}

export function packedOf(letter: DeadLetter): Packed {
  const [values, queue, origin, originCrc, bytes, , extras] = pack(letter)
  const row = rowOf(values)
  const rest = JSON.parse(row.rest) as Rest
  return {
    row: JSON.stringify(cellsOf(row, queue, rest, origin, extras)),
    rest: prefixChecksum(restText(rest)),
    origin: `${originCrc.toString(16).padStart(checksumLength, '0')}${origin}`,
    bytes: withChecksum(bytes),
    extras,
    newer: { rest, origin },
  }
}

function cellsOf(
  row: Row,
  queue: string,
  rest: Rest,
  origin: string,
  extras: PackedLetter[6],
): Cell[] {
  return [
    row.id,
    queue.toWellFormed(),
    row.state,
    row.priority,
    row.category,
    row.policy,
    row.reason ?? false,
    row.fingerprint.toWellFormed(),
    row.version,
    row.epoch,
    row.retries,
    String(row.backoffMs),
    row.retryAt ?? false,
    row.settledAt ?? false,
    row.expiresAt ?? false,
    row.deadLetteredAt,
    row.updatedAt,
    row.worker?.toWellFormed() ?? false,
    row.leasedUntil ?? false,
    row.lane?.toWellFormed() ?? false,
    row.tenant?.toWellFormed() ?? false,
    row.dependent,
    row.entries,
    row.omitted,
    origin.startsWith('{"entry":') ? 1 : 0,
    tagCells(extras?.tags),
    extras?.dedupeKey === undefined ? false : keyHash(extras.dedupeKey).toString('base64url'),
    rest.archivedFrom === 'resolved' ? 1 : 0,
  ]
}

/** Tags as indexed: without duplicates. */
export function tagCells(tags: readonly string[] | undefined): Cell {
  if (!tags || tags.length === 0) return false
  return [...new Set(tags.map((tag) => tag.toWellFormed()))]
}

export function withChecksum(bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(bytes.length + 4)
  whole.writeUInt32LE(crc32(bytes))
  whole.set(bytes, 4)
  return whole
}

/** The arguments of a stored letter for the script `keep`, with the bytes of an edit. */
export function keepArguments({ letter, original, waitsFor }: StoredLetter): Argument[] {
  const packed = packedOf(original ? { ...letter, payload: original } : letter)
  const waits = [...new Set(waitsFor)]
  let { row, rest } = packed
  if (waits.length > 0) {
    const cells = JSON.parse(row) as Cell[]
    cells[col.dependent - 1] = 1
    row = JSON.stringify(cells)
  }
  if (original)
    rest = prefixChecksum(restText({ payload: factsOf(letter.payload), ...packed.newer.rest }))
  const extras = {
    ...historyOf(packed),
    ...sourceOf(packed),
    ...(waits.length > 0 ? { d: waits } : {}),
    ...(original ? { e: 1 } : {}),
  }
  const edited = original ? withChecksum(letter.payload.bytes) : ''
  return [row, rest, packed.origin, packed.bytes, JSON.stringify(extras), edited]
}

/** The source id as indexed. */
export function sourceOf({ extras }: Packed): { s?: string } {
  return extras?.source === undefined ? {} : { s: extras.source }
}

export function historyOf({ extras }: Packed): { h?: string[] } {
  return extras?.history ? { h: extras.history.map((entry) => JSON.stringify(entry)) } : {}
}

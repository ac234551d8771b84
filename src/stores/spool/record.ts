import { crc32 } from 'node:zlib'

/**
 * A journal is a row of records: four bytes to be found by, the length of the body, a checksum of length and body,
 * and the body, which is JSON. The first byte never occurs in UTF-8, so no body, whoever wrote what is in it, can
 * hold what looks like the beginning of a record.
 */
const mark = Buffer.from([0xff, 0x52, 0x44, 0xfe])
const headBytes = 12

/** A body as a record. */
export function recordOf(body: Buffer): Buffer {
  const head = Buffer.alloc(headBytes)
  mark.copy(head)
  head.writeUInt32LE(body.length, 4)
  head.writeUInt32LE(checksum(head, body), 8)
  return Buffer.concat([head, body])
}

/** What stands in a journal from `start` to `end`: a record, or bytes that are none. */
export type Piece =
  | { start: number; end: number; body: Buffer }
  | { start: number; end: number; damage: Damage }

/** `torn`: the end of the file cuts a record short, as when the writer died. `damaged`: anything else. */
export type Damage = 'torn' | 'damaged'

/** Reads a journal to its end. Behind damage it goes on at the next record that is whole; every byte is in some piece. */
export function* piecesOf(journal: Buffer, from = 0): Generator<Piece> {
  let start = from
  while (start < journal.length) {
    const body = bodyAt(journal, start)
    if (body) {
      const end = start + headBytes + body.length
      yield { start, end, body }
      start = end
      continue
    }
    const end = nextRecord(journal, start + 1)
    const cut = end === journal.length && isCut(journal, start)
    yield { start, end, damage: cut ? 'torn' : 'damaged' }
    start = end
  }
}

function bodyAt(journal: Buffer, at: number): Buffer | undefined {
  if (!mark.equals(journal.subarray(at, at + mark.length)) || isCut(journal, at)) return undefined
  const begin = at + headBytes
  const body = journal.subarray(begin, begin + journal.readUInt32LE(at + 4))
  const head = journal.subarray(at, begin)
  return checksum(head, body) === journal.readUInt32LE(at + 8) ? body : undefined
}

function isCut(journal: Buffer, at: number): boolean {
  const left = journal.length - at
  return left < headBytes || left - headBytes < journal.readUInt32LE(at + 4)
}

function nextRecord(journal: Buffer, from: number): number {
  for (let at = journal.indexOf(mark, from); at !== -1; at = journal.indexOf(mark, at + 1))
    if (bodyAt(journal, at)) return at
  return journal.length
}

function checksum(head: Buffer, body: Buffer): number {
  return crc32(body, crc32(head.subarray(4, 8)))
}

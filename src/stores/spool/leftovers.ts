import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Timestamp } from '../../letter/time.ts'
import { segmentFile, segmentsIn, type SegmentName } from './folder.ts'
import { takeLock, type Lock } from './lock.ts'
import { isForeign, readSegment } from './segment.ts'

/** A segment in the row of those that wait. */
export interface Segment extends SegmentName {
  path: string
  /** How much of it was acknowledged; or, of a journal left behind, how much there is. */
  bytes: number
  /** Where what is not in the store yet begins. */
  from: number
  /** As far as it is known: nobody has counted those of one that could not be read yet. */
  letters: number
  oldestAt?: Timestamp
  /** How often it could not be read when its turn came. */
  failures: number
}

export const lockFile = (folder: string, owner: string): string => join(folder, `${owner}.lock`)
const cursorFile = (folder: string, owner: string): string => join(folder, `${owner}.drained`)

/**
 * How far a journal has been drained. It is not flushed: a kill leaves it right, and after a loss of power some
 * letters come to the store a second time, which knows them by their ids.
 */
export async function writeCursor(folder: string, { owner, number, from }: Segment): Promise<void> {
  const cursor = Buffer.alloc(12)
  cursor.writeUInt32LE(number, 0)
  cursor.writeUInt32LE(from, 4)
  cursor.writeUInt32LE(crc32(cursor.subarray(0, 8)), 8)
  await writeFile(cursorFile(folder, owner), cursor, { mode: 0o600 })
}

async function readCursor(
  folder: string,
  owner: string,
): Promise<{ number: number; from: number }> {
  const cursor = await readFile(cursorFile(folder, owner)).catch(() => Buffer.alloc(0))
  const sound = cursor.length === 12 && crc32(cursor.subarray(0, 8)) === cursor.readUInt32LE(8)
  if (!sound) return { number: 0, from: 0 }
  return { number: cursor.readUInt32LE(0), from: cursor.readUInt32LE(4) }
}

export async function removeCursor(folder: string, owner: string): Promise<void> {
  await rm(cursorFile(folder, owner), { force: true })
}

/** A journal whose process is gone, now ours. */
export interface Leftover {
  owner: string
  lock: Lock
  /** In their order; also those that could not be read this time. */
  segments: Segment[]
  /** Segments that nobody here can read, and why. */
  unreadable: { path: string; error: unknown }[]
}

/** Takes over the journals in a folder that nobody holds, the oldest first. */
export async function takeLeftovers(folder: string): Promise<Leftover[]> {
  const owners = new Set((await segmentsIn(folder)).map(({ owner }) => owner))
  const taken: Leftover[] = []
  try {
    for (const owner of owners) {
      const lock = takeLock(lockFile(folder, owner))
      if (!lock) continue
      const leftover: Leftover = { owner, lock, segments: [], unreadable: [] }
      taken.push(leftover)
      await lookThrough(folder, leftover)
    }
    return taken
  } catch (error) {
    // Or nobody could have them for as long as this process lives.
    for (const { lock } of taken) lock.release()
    throw error
  }
}

/** Someone else may have drained it in the meantime: what counts is what is there under the lock. */
async function lookThrough(folder: string, leftover: Leftover): Promise<void> {
  const { owner } = leftover
  const names = (await segmentsIn(folder)).filter((name) => name.owner === owner)
  const { number, from } = await readCursor(folder, owner)
  for (const name of names) {
    const path = join(folder, segmentFile(name))
    // One before the cursor is there because it could not be removed, or not be read when its turn came.
    await look(leftover, { ...name, path, from: name.number === number ? from : 0 })
  }
}

async function look(
  { segments, unreadable }: Leftover,
  found: SegmentName & { path: string; from: number },
): Promise<void> {
  try {
    const { entries, bytes } = await readSegment(found.path, found.from)
    const oldestAt = entries[0]?.letter.deadLetteredAt
    const known = { ...found, bytes, letters: entries.length, failures: 0 }
    segments.push(oldestAt === undefined ? known : { ...known, oldestAt })
  } catch (error) {
    const size = isForeign(error) ? undefined : await sizeOf(found.path)
    if (size === undefined) unreadable.push({ path: found.path, error })
    else segments.push({ ...found, bytes: size, letters: 0, failures: 0 })
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ size }) => size,
    () => undefined,
  )
}

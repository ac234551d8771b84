import { mkdir, open, readdir, rmdir, stat, statfs, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RedriveError } from '../../errors.ts'
import type { Aside, AsideKind } from './backlog.ts'

/** One file of a journal. The name tells whose it is and where it stands in the row. */
export interface SegmentName {
  owner: string
  number: number
}

const segmentName = /^([0-9a-f-]{36})-(\d{6,})\.journal$/

export function segmentFile({ owner, number }: SegmentName): string {
  return `${owner}-${String(number).padStart(6, '0')}.journal`
}

/** The segments in a folder, by owner and number. Owners are named by time, so that the older journal is first. */
export async function segmentsIn(folder: string): Promise<SegmentName[]> {
  const found = (await readdir(folder)).flatMap((file) => {
    const match = segmentName.exec(file)
    return match ? [{ owner: match[1]!, number: Number(match[2]) }] : []
  })
  return found.sort((a, b) =>
    a.owner === b.owner ? a.number - b.number : a.owner < b.owner ? -1 : 1,
  )
}

/** Makes the folder, for its owner only. False: it was there. */
export async function makeFolder(folder: string): Promise<boolean> {
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (made === undefined) return false
  for (let at = folder; at.length >= made.length; at = dirname(at)) await syncFolder(dirname(at))
  return true
}

/** Takes the folder away if nothing is in it. */
export async function dropFolder(folder: string): Promise<void> {
  await rmdir(folder).catch(() => {})
}

/** A new name is only safe once its folder has been flushed. Windows has no such thing, and does not need it. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Writes a file that is whole and flushed when this resolves. Writing it again is harmless. */
export async function writeAside(file: string, content: Uint8Array | string): Promise<void> {
  await writeFile(file, content, { mode: 0o600, flush: true })
  await syncFolder(dirname(file))
}

/** The name of what is put aside: of which segment, and from which byte on. */
export function asideFile(segment: string, start: number, what: AsideKind): string {
  const name = basename(segment, '.journal')
  return join(dirname(segment), `${name}-${start}.${what}${what === 'refused' ? '.json' : ''}`)
}

/** What was put aside and nobody has taken away. */
export async function asideIn(folder: string): Promise<Omit<Aside, 'unreadable'>> {
  const files = await readdir(folder).catch(() => [])
  const count = (ending: string): number => files.filter((file) => file.endsWith(ending)).length
  return { torn: count('.torn'), damaged: count('.damaged'), refused: count('.refused.json') }
}

/** What lies in the folder of a spool, seen from outside: another process may be at work on it. */
export interface Sight {
  journals: number
  bytes: number
  /** Files of what was set aside. */
  aside: number
}

/** Looks at a folder without touching it. One that is not there is empty. */
export async function lookInto(folder: string): Promise<Sight> {
  const files = await readdir(folder).catch(() => [])
  const journals = files.filter((file) => segmentName.test(file))
  const sizes = await Promise.all(
    journals.map((file) =>
      stat(join(folder, file)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  const { torn, damaged, refused } = await asideIn(folder)
  return {
    journals: journals.length,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    aside: torn + damaged + refused,
  }
}

/** What stays free, as in the SQLite store: so much, or on a small disk this share of it. */
const reserveBytes = 64 * 2 ** 20
const reserveShare = 0.1

/** A spool must not take the room that a store on the same disk needs to settle and remove. */
export async function checkRoom(folder: string, wanted: number): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(folder)
  const left = bavail * bsize - wanted
  if (left > Math.min(reserveBytes, blocks * bsize * reserveShare)) return
  throw new RedriveError(
    'STORE_UNAVAILABLE',
    `the disk of the spool ${folder} is nearly full: free some space`,
  )
}

import { statfsSync, statSync } from 'node:fs'

/** What is kept free for settling and removing: so much, or on a small disk this share of it. */
const reserveBytes = 64 * 2 ** 20
const reserveShare = 0.1

/**
 * Bytes left on the disk of this file when they are no more than the reserve; undefined while there is plenty. What stands
 * in the WAL must fit into the file, so the reserve is at least as large as the WAL.
 */
export function lastBytes(path: string): number | undefined {
  const { bavail, blocks, bsize } = statfsSync(path)
  const left = bavail * bsize
  const walBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  const reserve = Math.max(blocks * bsize * reserveShare, walBytes)
  return left <= Math.min(reserveBytes, reserve) ? left : undefined
}

/** What is said while the reserve is all there is. */
export function lowOnSpace(path: string, left: number): string {
  const kib = Math.floor(left / 1024)
  return `sqlite ${path}: the disk is nearly full (${kib} KiB left): new letters are refused, so that those kept can still be settled and removed; free some space`
}
